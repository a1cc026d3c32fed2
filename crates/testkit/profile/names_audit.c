/* An auditor that traces every call through a PLT: calls come from the loader then. */
#include <link.h>

unsigned la_version(unsigned version) { return version; }

unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
    (void)map, (void)namespace, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, La_x86_64_regs *registers,
                                  unsigned *flags, const char *name, long *frame)
{
    (void)index, (void)from, (void)to, (void)registers, (void)flags, (void)name;
    *frame = 64; /* a frame of the loader's stays below the call */
    return symbol->st_value;
}

unsigned la_x86_64_gnu_pltexit(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, const La_x86_64_regs *in,
                               La_x86_64_retval *out, const char *name)
{
    (void)symbol, (void)index, (void)from, (void)to, (void)in, (void)out, (void)name;
    return 0;
}
