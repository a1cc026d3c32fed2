"""What the drop-in's locks look like in gdb: owner, mode, waiters, where glibc's own fields say nothing.

    (gdb) source libspinpark_preload.so-gdb.py
    (gdb) print queue_lock
    $1 = {spinpark mutex, held by 4711 (thread 2), 1 waiting: 4712 (thread 3)}

gdb loads it by itself if it lies beside the library in a directory of its auto-load safe path. It works on core dumps as well,
reads memory only, and leaves objects alone that are glibc's (process-shared, robust, priority-inheriting), and processes without
the drop-in. With SPINPARK_DISABLE=1 in the process' environment, all objects are glibc's.
"""

import re

import gdb

# Bits of the lock word: crates/locks/src/word.rs.
WRITER, UPGRADE, HANDOFF, WAKING, SLOTS = 3, 8, 32, 256, 512
COUNT_SHIFT = 10
# Offsets in a waiter: WaitNode::layout() in crates/locks/src/queue/node.rs.
NEXT, TOKEN, WANT = 8, 28, 32
# The head of a queue: crates/pthread/src/fields.rs. A condition variable's queue is behind its first 8 bytes.
HEAD, COND_QUEUE = 32, 8
WANTS = ["to read", "to read", "to read", "to write", "to read upgradably", "to upgrade", "to write", "to write"]
# More are not listed: a queue that changes under a running thread may look endless.
MOST_WAITERS = 64

# Kinds of a mutex that are glibc's (the last bit: found to be locked by glibc's own functions), and where both keep what decides that.
GLIBCS_KINDS = 0xF0 | 0x400
COND_SHARED, COND_TAKEN_OVER = 1, 4
# Where `__wrefs` is in a condition variable: glibc 2.41 moved it, and so did fixes of older releases (BZ 25847).
MOVED, COND_FLAGS, COND_FLAGS_MOVED = (2, 41), 36, 28


def number(address, size):
    memory = gdb.selected_inferior().read_memory(address, size)
    return int.from_bytes(bytes(memory), "little")


def is_loaded():
    return any("libspinpark_preload" in (objfile.filename or "") for objfile in gdb.objfiles())


def is_disabled():
    """Whether the drop-in passes every call to glibc: the library has no symbols to ask, its environment tells."""
    wanted = b"SPINPARK_DISABLE="
    try:
        at = number(int(gdb.parse_and_eval("(unsigned long) &environ")), 8)
        while at and (variable := number(at, 8)):
            memory = bytes(gdb.selected_inferior().read_memory(variable, len(wanted) + 1))
            if memory.startswith(wanted):
                return memory[-1:] not in (b"\0", b"0")
            at += 8
    except gdb.error:
        pass
    return False


def thread(token):
    """The kernel's id of a thread, and gdb's number of it."""
    for known in gdb.selected_inferior().threads():
        if token in known.ptid[1:]:
            return f"{token} (thread {known.num})"
    return str(token)


def waiters(lock):
    """The waiters of the queue at `lock`, the oldest first: thread and what it wants."""
    head = number(lock + HEAD, 8)
    node, found = head, []
    while node and len(found) < MOST_WAITERS:
        found.append((number(node + TOKEN, 4), number(node + WANT, 1)))
        node = number(node + NEXT, 8)
        if node == head:
            break
    return found


def waiting(lock, wants):
    found = waiters(lock)
    if not found:
        return []
    # Upgrading and reading are told apart only where both can be.
    what = lambda want: f" {WANTS[want]}" if wants and want < len(WANTS) else ""
    return [f"{len(found)} waiting: " + ", ".join(thread(token) + what(want) for token, want in found)]


def describe(kind, word, lock, wants):
    count = word >> COUNT_SHIFT
    parts = []
    if word & WRITER:
        parts.append(f"held{' for writing' if wants else ''} by {thread(count)}")
    elif count or word & UPGRADE:
        parts.append(f"held by {count} readers" if count != 1 else "held by 1 reader")
        if word & UPGRADE:
            parts.append("and an upgradable one")
    elif not word & SLOTS:
        parts.append("free")
    if word & SLOTS:
        parts.append("readers may be in slots of their CPUs, uncounted")
    if word & HANDOFF:
        parts.append("the next release hands it over")
    elif word & WAKING:
        parts.append("a woken waiter is on its way")
    return "{spinpark " + ", ".join([kind, *parts, *waiting(lock, wants)]) + "}"


class Printer:
    def __init__(self, text):
        self.text = text

    def to_string(self):
        return self.text


def mutex(address, _):
    kind = number(address + 16, 4)
    if kind & GLIBCS_KINDS and kind != 0xFFFFFFFF:
        return None
    if kind == 0xFFFFFFFF:
        return "{spinpark mutex, destroyed}"
    name = {1: "recursive mutex", 2: "error-checking mutex"}.get(kind & 3, "mutex")
    if kind & 3 == 1 and number(address, 4) & WRITER:
        name += f" (depth {number(address + 4, 4)})"
    return describe(name, number(address, 4), address, False)


def rwlock(address, _):
    if number(address + 28, 4):
        return None
    return describe("read-write lock", number(address, 4), address, True)


def read_libc(name):
    """The libc that the process runs with; where it has another root directory, gdb names the file with a prefix."""
    prefix = "target:"
    if name.startswith(prefix):
        name = f"/proc/{gdb.selected_inferior().pid}/root{name[len(prefix):]}"
    with open(name, "rb") as file:
        return file.read()


versions = {}


def libc_version():
    """glibc's version as its file says it, which needs no symbols and no running process; (0, 0) if there is no such file."""
    for objfile in gdb.objfiles():
        name = objfile.filename or ""
        if not re.search(r"/libc(\.so\.6|-2\.\d+\.so)$", name):
            continue
        if name not in versions:
            try:
                found = re.search(rb"GNU C Library[^\0]*? version (\d+)\.(\d+)", read_libc(name))
            except OSError:
                found = None
            versions[name] = tuple(map(int, found.groups())) if found else (0, 0)
        return versions[name]
    return 0, 0


def cond_flags(kind):
    """The offset of `__wrefs`. The debug information is that of the headers which the program was compiled with: of an older
    libc, perhaps, so it decides only where glibc's version does not."""
    if libc_version() >= MOVED:
        return COND_FLAGS_MOVED
    try:
        return kind.strip_typedefs()["__data"].type.strip_typedefs()["__wrefs"].bitpos // 8
    except (KeyError, TypeError, gdb.error):
        return COND_FLAGS


def condition(address, kind):
    flags = number(address + cond_flags(kind), 4)
    if flags & (COND_SHARED | COND_TAKEN_OVER) == COND_SHARED:
        return None
    return "{spinpark " + ", ".join(["condition variable", *(waiting(address + COND_QUEUE, False) or ["no waiters"])]) + "}"


KINDS = {"pthread_mutex_t": mutex, "pthread_rwlock_t": rwlock, "pthread_cond_t": condition}


def look_up(value):
    # `pthread_mutex_t` is a typedef; behind one of the program's own (`__gthread_mutex_t`) it is found as well.
    kind = value.type.unqualified()
    while kind.name not in KINDS and kind.code == gdb.TYPE_CODE_TYPEDEF:
        kind = kind.target().unqualified()
    show = KINDS.get(kind.name)
    if show is None or value.address is None or not is_loaded() or is_disabled():
        return None
    try:
        text = show(int(value.address), kind)
    except gdb.MemoryError:
        return None
    return text and Printer(text)


look_up.name = "spinpark"
gdb.pretty_printers = [old for old in gdb.pretty_printers if getattr(old, "name", "") != "spinpark"]
gdb.pretty_printers.append(look_up)
