// Programs with one lock that can be mended for real: is that worth what `spinpark whatif` has said? ci/whatif.sh asks.
//
//   mend WHAT HOW [ROUNDS]
//
//   busy     two threads: half of their time in sections of `table_lock`, of random lengths
//   full     two threads: sections are nearly all they do, so the lock is the limit
//   seldom   two threads: a tenth of their time is in sections
//   queue    a producer and a consumer share `queue_lock`; the queue has room for ten items, which are copied in sections
//   pair     two threads, each with a lock of its own; the sections of `first_lock` take 5 % longer than those of
//            `second_lock`, and the program ends with the slower thread
//
//   as-is    what is to be mended
//   half     sections have half of the work
//   out      the work of half a section is done outside of it
//   shards   busy, full, seldom: of two locks, the one of the key
//
// Work is computed, not slept: the lengths are numbers of iterations, the same in each run.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

// Outside of the namespace below, whose name reports would put before theirs.
std::mutex table_lock, table_lock_2, queue_lock, first_lock, second_lock;

namespace {

std::condition_variable has_items, has_room;
int queued;
bool is_half, is_out, has_shards;

// An iteration is a nanosecond or two.
__attribute__((noinline)) uint64_t work(uint64_t state, int iterations) {
    for (int i = 0; i < iterations; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    return state;
}

// Between a half and one and a half of the mean.
int around(int mean, uint64_t &random) {
    random = work(random, 1);
    return mean / 2 + static_cast<int>(random % static_cast<uint64_t>(mean));
}

// What a section does, and what stays for after it.
uint64_t section(std::mutex &lock, uint64_t state, int iterations) {
    const int inside = is_half || is_out ? iterations / 2 : iterations;
    {
        const std::lock_guard guard(lock);
        state = work(state, inside);
    }
    return is_out ? work(state, iterations - inside) : state;
}

volatile uint64_t result;

void table(uint64_t seed, int rounds, int outside, int inside) {
    uint64_t random = seed, state = seed;
    for (int i = 0; i < rounds; i++) {
        state = work(state, around(outside, random));
        std::mutex &lock = has_shards && random >> 40 & 1 ? table_lock_2 : table_lock;
        state = section(lock, state, around(inside, random));
    }
    result = state;
}

void copy(int iterations) {
    result = work(1, is_half || is_out ? iterations / 2 : iterations);
}

void produce(int rounds) {
    uint64_t random = 1;
    for (int i = 0; i < rounds; i++) {
        result = work(random, around(1500, random));
        {
            std::unique_lock guard(queue_lock);
            has_room.wait(guard, [] { return queued < 10; });
            copy(1500);
            queued++;
            has_items.notify_one();
        }
        if (is_out) result = work(1, 750);
    }
}

void consume(int rounds) {
    uint64_t random = 2;
    for (int i = 0; i < rounds; i++) {
        {
            std::unique_lock guard(queue_lock);
            has_items.wait(guard, [] { return queued > 0; });
            copy(1500);
            queued--;
            has_room.notify_one();
        }
        if (is_out) result = work(1, 750);
        result = work(random, around(1500, random));
    }
}

void own(std::mutex &lock, bool is_first, int rounds) {
    const bool was_half = is_half && is_first;
    for (int i = 0; i < rounds; i++) {
        const std::lock_guard guard(lock);
        const int iterations = is_first ? 4200 : 4000;
        result = work(3, was_half ? iterations / 2 : iterations);
    }
}

} // namespace

int main(int count, char **arguments) {
    const std::string what = count > 1 ? arguments[1] : "", how = count > 2 ? arguments[2] : "";
    const int rounds = count > 3 ? std::atoi(arguments[3]) : 50'000;
    is_half = how == "half";
    is_out = how == "out";
    has_shards = how == "shards";
    if (!is_half && !is_out && !has_shards && how != "as-is") {
        std::fprintf(stderr, "usage: mend WHAT HOW [ROUNDS]\n");
        return 2;
    }
    const auto both = [](auto one, auto other) {
        std::thread first(one), second(other);
        first.join();
        second.join();
    };
    const auto tables = [&](int outside, int inside) {
        both([=] { table(88172645463325252, rounds, outside, inside); },
             [=] { table(1181783497276652981, rounds, outside, inside); });
    };
    if (what == "busy") tables(2000, 2000);
    else if (what == "full") tables(400, 3600);
    else if (what == "seldom") tables(3600, 400);
    else if (what == "queue") both([=] { produce(rounds); }, [=] { consume(rounds); });
    else if (what == "pair") both([=] { own(first_lock, true, rounds); }, [=] { own(second_lock, false, rounds); });
    else {
        std::fprintf(stderr, "%s: unknown\n", what.c_str());
        return 2;
    }
}
