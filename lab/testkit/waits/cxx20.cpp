// What C++20 waits with: libstdc++'s and libc++'s futexes.
#include "rounds.h"
#include <atomic>
#include <barrier>
#include <future>
#include <latch>
#include <mutex>
#include <optional>
#include <semaphore>

namespace {

std::atomic<int> word{0};

OF_ITS_OWN void atomic_waits(int round)
{
    word.wait(round);
    STAYS;
}

OF_ITS_OWN void atomic_lets_go(int round)
{
    let_come();
    word.store(round + 1);
    word.notify_one();
    STAYS;
}

// Of eight bytes: the futex is libstdc++'s.
std::atomic<long> wide{0};

OF_ITS_OWN void wide_atomic_waits(int round)
{
    wide.wait(round);
    STAYS;
}

OF_ITS_OWN void wide_atomic_lets_go(int round)
{
    let_come();
    wide.store(round + 1);
    wide.notify_one();
    STAYS;
}

std::atomic_flag flags[ROUNDS];

OF_ITS_OWN void flag_waits(int round)
{
    flags[round].wait(false);
    STAYS;
}

OF_ITS_OWN void flag_lets_go(int round)
{
    let_come();
    flags[round].test_and_set();
    flags[round].notify_all();
    STAYS;
}

std::counting_semaphore<> semaphore{0};

OF_ITS_OWN void semaphore_waits(int)
{
    semaphore.acquire();
    STAYS;
}

OF_ITS_OWN void semaphore_lets_go(int)
{
    let_come();
    semaphore.release();
    STAYS;
}

std::optional<std::latch> latches[ROUNDS];

OF_ITS_OWN void latch_waits(int round)
{
    latches[round]->wait();
    STAYS;
}

OF_ITS_OWN void latch_lets_go(int round)
{
    latches[round].emplace(1);
    let_come();
    latches[round]->count_down();
    STAYS;
}

std::barrier<> barrier{2};

OF_ITS_OWN void barrier_waits(int)
{
    barrier.arrive_and_wait();
    STAYS;
}

OF_ITS_OWN void barrier_lets_go(int)
{
    let_come();
    barrier.arrive_and_wait();
    STAYS;
}

std::promise<int> promises[ROUNDS];

OF_ITS_OWN void future_waits(int round)
{
    if (promises[round].get_future().get() != round)
        abort();
    STAYS;
}

OF_ITS_OWN void future_lets_go(int round)
{
    let_come();
    promises[round].set_value(round);
    STAYS;
}

std::once_flag onces[ROUNDS];

OF_ITS_OWN void once_waits(int round)
{
    std::call_once(onces[round], abort);
    STAYS;
}

OF_ITS_OWN void once_lets_go(int round)
{
    std::call_once(onces[round], let_come);
    STAYS;
}

// A lock that sleeps in `atomic::wait`: no table knows it.
std::atomic<int> turnstile{0};

OF_ITS_OWN void turnstile_waits(int)
{
    while (turnstile.exchange(1) != 0)
        turnstile.wait(1);
    turnstile.store(0);
    STAYS;
}

OF_ITS_OWN void turnstile_lets_go(int)
{
    turnstile.store(1);
    let_come();
    turnstile.store(0);
    turnstile.notify_one();
    STAYS;
}

} // namespace

int main(int argc, char **argv)
{
    static const struct scene scenes[] = {
        SCENE(atomic), SCENE(wide_atomic), SCENE(flag), SCENE(semaphore), SCENE(latch), SCENE(barrier),
        SCENE(future), SCENE(once), SCENE(turnstile),
    };
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof scenes[0]);
}
