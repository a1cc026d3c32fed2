import hashlib, queue, threading

jobs = queue.Queue(16)
lock = threading.Lock()
digests = set()

def worker():
    while (job := jobs.get()) is not None:
        with lock:
            digests.add(hashlib.sha256(job).digest())  # lets other threads run Python code

threads = [threading.Thread(target=worker) for _ in range(4)]
for thread in threads:
    thread.start()
for number in range(4000):
    jobs.put(number.to_bytes(4, "big") * 50_000)
for _ in threads:
    jobs.put(None)
