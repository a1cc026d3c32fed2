// Abseil's synchronisation.
#include "rounds.h"
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <memory>

namespace {

absl::Mutex mutex;

OF_ITS_OWN void mutex_waits(int)
{
    absl::MutexLock lock(&mutex);
    STAYS;
}

OF_ITS_OWN void mutex_lets_go(int)
{
    absl::MutexLock lock(&mutex);
    let_come();
    STAYS;
}

OF_ITS_OWN void reader_waits(int)
{
    mutex.ReaderLock();
    mutex.ReaderUnlock();
    STAYS;
}

OF_ITS_OWN void reader_lets_go(int)
{
    mutex.Lock();
    let_come();
    mutex.Unlock();
    STAYS;
}

absl::CondVar changed;
int seen;

OF_ITS_OWN void condvar_waits(int round)
{
    mutex.Lock();
    while (seen == round)
        changed.Wait(&mutex);
    mutex.Unlock();
    STAYS;
}

OF_ITS_OWN void condvar_lets_go(int round)
{
    let_come();
    mutex.Lock();
    seen = round + 1;
    mutex.Unlock();
    changed.Signal();
    STAYS;
}

// A wait for a condition ends with the release of the lock that made it true.
OF_ITS_OWN void condition_waits(int round)
{
    auto is_seen = [round] { return seen > round; };
    mutex.LockWhen(absl::Condition(&is_seen));
    mutex.Unlock();
    STAYS;
}

OF_ITS_OWN void condition_lets_go(int round)
{
    let_come();
    mutex.Lock();
    seen = round + 1;
    mutex.Unlock();
    STAYS;
}

std::unique_ptr<absl::Notification> notifications[ROUNDS];

OF_ITS_OWN void notification_waits(int round)
{
    notifications[round]->WaitForNotification();
    STAYS;
}

OF_ITS_OWN void notification_lets_go(int round)
{
    notifications[round] = std::make_unique<absl::Notification>();
    let_come();
    notifications[round]->Notify();
    STAYS;
}

} // namespace

int main(int argc, char **argv)
{
    static const struct scene scenes[] = {
        SCENE(mutex), SCENE(reader), SCENE(condvar), SCENE(condition), SCENE(notification),
    };
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof scenes[0]);
}
