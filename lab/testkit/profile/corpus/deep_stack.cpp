// A mutex that is waited for and held 150 calls deep, through a std::function and a virtual function.
#include <functional>
#include <mutex>
#include <atomic>
#include <chrono>
#include <thread>

namespace {
std::mutex tree_mutex;
std::atomic<int> taken, served;
constexpr int rounds = 8;

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
void await_at_least(std::atomic<int> &number, int least)
{
    while (number < least)
        sleep_ms(1);
}
} // namespace

namespace tree {
struct Node {
    virtual ~Node() = default;
    virtual void visit(int round) = 0;
};

struct Rebalance : Node {
    __attribute__((noinline)) void visit(int round) override
    {
        std::lock_guard<std::mutex> guard(tree_mutex);
        taken = round;
        sleep_ms(40);
    }
};

struct Search : Node {
    __attribute__((noinline)) void visit(int) override
    {
        std::lock_guard<std::mutex> guard(tree_mutex);
        asm volatile("" ::: "memory");
    }
};

__attribute__((noinline)) void descend(Node &node, int depth, int round)
{
    if (depth == 0) {
        std::function<void()> step = [&] { node.visit(round); };
        step();
    } else
        descend(node, depth - 1, round);
    asm volatile("" ::: "memory");
}
} // namespace tree

int main()
{
    std::thread searcher([] {
        tree::Search search;
        for (int round = 1; round <= rounds; round++) {
            await_at_least(taken, round);
            tree::descend(search, 150, round);
            served++;
        }
    });
    tree::Rebalance rebalance;
    for (int round = 1; round <= rounds; round++) {
        tree::descend(rebalance, 150, round);
        await_at_least(served, round);
    }
    searcher.join();
}
