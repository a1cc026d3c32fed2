/* Calls with as many arguments as their checked forms have (-D_FORTIFY_SOURCE=2), of a thread that has a lock for which another one
 * waits, and of one that has none. Argument: ignored. */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int to, from;
static struct sockaddr_in there;

/* So long that the compiler does not know it fits. */
static size_t length(void)
{
    static volatile size_t bytes = 5;
    return bytes;
}

static void send_and_receive(void)
{
    char buffer[64];
    struct sockaddr_in sender = {0};
    socklen_t size = sizeof sender;
    CHECK(sendto(to, "hello", 5, 0, (struct sockaddr *)&there, sizeof there) == 5);
    CHECK(recvfrom(from, buffer, length(), 0, (struct sockaddr *)&sender, &size) == 5);
    CHECK(size == sizeof sender && sender.sin_family == AF_INET && memcmp(buffer, "hello", 5) == 0);
    CHECK(send(to, "again", 5, 0) == -1 && errno == EDESTADDRREQ);
    CHECK(sendto(to, "again", 5, 0, (struct sockaddr *)&there, sizeof there) == 5);
    CHECK(recv(from, buffer, length(), 0) == 5);
    struct pollfd polled = {.fd = from, .events = POLLIN};
    CHECK(poll(&polled, length() / 5, 1) == 0);
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], "12345", 5) == 5 && read(ends[0], buffer, length()) == 5);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void *waiter(void *unused)
{
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

int main(void)
{
    there = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof there;
    CHECK((to = socket(AF_INET, SOCK_DGRAM, 0)) >= 0 && (from = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
    CHECK(bind(from, (struct sockaddr *)&there, sizeof there) == 0);
    CHECK(getsockname(from, (struct sockaddr *)&there, &size) == 0);
    send_and_receive();
    for (int round = 0; round < 3; round++) {
        struct thread thread;
        OK(pthread_mutex_lock(&mutex));
        start(&thread, waiter, NULL);
        sleep_ms(20);
        send_and_receive();
        OK(pthread_mutex_unlock(&mutex));
        join(&thread);
    }
    send_and_receive();
    puts("ok");
    return 0;
}
