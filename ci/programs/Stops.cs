// Threads that allocate, lock and wait, while the collector stops them all.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

class Stops {
    static void Main() {
        var queue = new Queue<int[]>();
        long sum = 0;
        const int items = 20000, consumers = 4;
        var threads = Enumerable.Range(0, consumers).Select(_ => new Thread(() => {
            for (;;) {
                int[] item;
                lock (queue) {
                    while (queue.Count == 0) Monitor.Wait(queue);
                    item = queue.Dequeue();
                }
                if (item.Length == 0) return;
                Interlocked.Add(ref sum, item.Sum());
            }
        })).ToArray();
        foreach (var thread in threads) thread.Start();
        for (int i = 0; i < items; i++) {
            var item = Enumerable.Range(i, 64).ToArray();
            lock (queue) { queue.Enqueue(item); Monitor.Pulse(queue); }
            if (i % 500 == 0) GC.Collect();
        }
        for (int i = 0; i < consumers; i++) lock (queue) { queue.Enqueue(new int[0]); Monitor.PulseAll(queue); }
        foreach (var thread in threads) thread.Join();
        long parallel = 0;
        Parallel.For(0, 2000, i => Interlocked.Add(ref parallel, new List<int>(Enumerable.Range(0, i)).Count));
        var gate = new SemaphoreSlim(0);
        bool late = gate.Wait(50);
        Console.WriteLine("{0} {1} {2}", sum, parallel, late);
    }
}
