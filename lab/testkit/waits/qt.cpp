// Qt's locks and semaphores.
#include "rounds.h"
#include <QMutex>
#include <QSemaphore>
#include <QThread>

namespace {

QMutex mutex;

OF_ITS_OWN void mutex_waits(int)
{
    mutex.lock();
    mutex.unlock();
    STAYS;
}

OF_ITS_OWN void mutex_lets_go(int)
{
    mutex.lock();
    let_come();
    mutex.unlock();
    STAYS;
}

QRecursiveMutex recursive;

OF_ITS_OWN void recursive_waits(int)
{
    recursive.lock();
    recursive.unlock();
    STAYS;
}

OF_ITS_OWN void recursive_lets_go(int)
{
    recursive.lock();
    let_come();
    recursive.unlock();
    STAYS;
}

QSemaphore semaphore;

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

} // namespace

int main(int argc, char **argv)
{
    static const struct scene scenes[] = {SCENE(mutex), SCENE(recursive), SCENE(semaphore)};
    return run_scene(argc, argv, scenes, sizeof scenes / sizeof scenes[0]);
}
