/* OpenSSL 3 fetches algorithms by name under a read-write lock: each thread fetches SHA-256 and digests 64 bytes with it.
 *
 *   cc -O2 -pthread examples/openssl-fetch.c -lcrypto -o openssl-fetch
 *   spinpark compare --rounds 20 -- ./openssl-fetch 4 400000
 *
 * Arguments: threads, digests of all threads together. It prints digests per second. Needs libssl-dev. */
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long share;

static void *work(void *argument)
{
    unsigned char data[64] = {0}, digest[EVP_MAX_MD_SIZE];
    unsigned int length;
    (void)argument;
    for (long i = 0; i < share; i++) {
        EVP_MD *md = EVP_MD_fetch(NULL, "SHA256", NULL);
        if (md == NULL || !EVP_Digest(data, sizeof data, digest, &length, md, NULL)) {
            fputs("OpenSSL refuses SHA-256\n", stderr);
            exit(1);
        }
        EVP_MD_free(md);
        data[0] = digest[0];
    }
    return NULL;
}

int main(int count, char **arguments)
{
    int threads = count > 1 ? atoi(arguments[1]) : 2;
    long digests = count > 2 ? atol(arguments[2]) : 200000;
    if (threads < 1 || threads > 1024 || digests < threads) {
        fputs("usage: openssl-fetch THREADS DIGESTS\n", stderr);
        return 2;
    }
    share = digests / threads;
    pthread_t others[1024];
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&others[i], NULL, work, NULL) != 0) {
            fputs("no more threads\n", stderr);
            return 1;
        }
    }
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("%.0f digests/s\n", (double)(share * threads) / seconds);
    return 0;
}
