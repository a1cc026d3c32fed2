"""Threads that compute: one interpreter lock is all that they wait for."""

import threading


def count_primes(limit):
    return sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in range(2, limit))


threads = [threading.Thread(target=count_primes, args=(30_000,), name=f"primes-{i}") for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
