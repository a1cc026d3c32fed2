"""Four threads compute: one at a time has the interpreter's lock."""
import sys
import threading


def work():
    total = 0
    for number in range(int(sys.argv[1])):
        total += number * number % 7


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
