/* One wait in the whole run, for a mutex that no thread had waited for when it was taken. */
#include "corpus.h"

static pthread_mutex_t schema_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int taken;

static NOINLINE void migrate_schema(void)
{
    CHECK(pthread_mutex_lock(&schema_lock) == 0);
    atomic_store(&taken, 1);
    sleep_ms(400);
    CHECK(pthread_mutex_unlock(&schema_lock) == 0);
    NOT_LAST();
}

static NOINLINE void prepare_statement(void)
{
    CHECK(pthread_mutex_lock(&schema_lock) == 0);
    CHECK(pthread_mutex_unlock(&schema_lock) == 0);
    NOT_LAST();
}

static void *session(void *none)
{
    await_at_least(&taken, 1);
    prepare_statement();
    return none;
}

int main(void)
{
    pthread_t thread = start(session, NULL);
    migrate_schema();
    join(thread);
    return 0;
}
