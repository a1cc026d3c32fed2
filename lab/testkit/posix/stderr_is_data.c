/* A program that has closed its standard files, and whose data file is number 2 by now, does what the drop-in has something to say
 * about. Nothing of that is written to the file.
 *
 *   stderr_is_data FILE PLUGIN     opens PLUGIN with RTLD_DEEPBIND
 */
#include "check.h"
#include <dlfcn.h>
#include <fcntl.h>

int main(int argc, char **argv)
{
    CHECK(argc > 2);
    int out = dup(STDOUT_FILENO);
    close(0), close(1), close(2);
    CHECK(open("/dev/null", O_RDONLY) == 0 && open("/dev/null", O_WRONLY) == 1);
    int file = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
    CHECK(file == STDERR_FILENO && write(file, "begin\n", 6) == 6);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    bool is_open = dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND) != NULL;
    CHECK(write(file, "end\n", 4) == 4);
    char text[4096] = "";
    long bytes = pread(file, text, sizeof text - 1, 0);
    bool is_ours = is_open && bytes == 10 && strcmp(text, "begin\nend\n") == 0;
    if (!is_ours)
        dprintf(out, "%ld bytes: \"%s\"\n", bytes, text);
    return !is_ours;
}
