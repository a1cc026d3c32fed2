"""One thread waits for a lock that another one has: see rounds.h, of which this is the same in Python."""

import os
import threading
import time

ROUNDS = 10
HOLD = 0.02

lock = threading.Lock()
ready = coming = done = waiter = waited = slept = 0


def until(condition):
    while not condition():
        time.sleep(0.0001)


def sleeps(thread):
    with open(f"/proc/self/task/{thread}/stat") as file:
        return file.read().rpartition(")")[2].startswith(" S")


def waits():
    global coming, done, waiter, waited
    waiter = threading.get_native_id()
    for number in range(1, ROUNDS + 1):
        until(lambda: ready >= number)
        start = time.monotonic_ns()
        coming = number
        lock.acquire()
        waited += time.monotonic_ns() - start
        lock.release()
        done = number
    until(lambda: False)


threading.Thread(target=waits, daemon=True).start()
until(lambda: waiter)
for number in range(1, ROUNDS + 1):
    lock.acquire()
    ready = number
    until(lambda: coming >= number)
    # Until then it may sleep for the interpreter's lock.
    time.sleep(HOLD / 10)
    until(lambda: sleeps(waiter))
    start = time.monotonic_ns()
    time.sleep(HOLD)
    slept += time.monotonic_ns() - start
    lock.release()
    until(lambda: done >= number)
print("waits", ROUNDS, slept, waited, flush=True)
