/* A Windows program: threads with critical sections, events, condition variables and slim locks. */
#include <stdio.h>
#include <windows.h>

#define THREADS 8
#define ROUNDS 20000

static CRITICAL_SECTION section;
static SRWLOCK slim = SRWLOCK_INIT;
static CONDITION_VARIABLE changed = CONDITION_VARIABLE_INIT;
static long count, shared, turn;

static DWORD WINAPI work(void *arg)
{
    long self = (long)(INT_PTR)arg;
    for (int i = 0; i < ROUNDS; i++) {
        EnterCriticalSection(&section);
        count++;
        LeaveCriticalSection(&section);
        if (i % 16 == 0) {
            AcquireSRWLockExclusive(&slim);
            shared++;
            ReleaseSRWLockExclusive(&slim);
        }
    }
    for (int i = 0; i < 50; i++) {
        EnterCriticalSection(&section);
        while (turn % THREADS != self)
            SleepConditionVariableCS(&changed, &section, INFINITE);
        turn++;
        LeaveCriticalSection(&section);
        WakeAllConditionVariable(&changed);
    }
    return 0;
}

int main(void)
{
    HANDLE threads[THREADS];
    InitializeCriticalSection(&section);
    for (int i = 0; i < THREADS; i++)
        threads[i] = CreateThread(NULL, 0, work, (void *)(INT_PTR)i, 0, NULL);
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
    printf("%ld %ld %ld\n", count, shared, turn);
    return 0;
}
