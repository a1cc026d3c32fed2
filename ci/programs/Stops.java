// Threads that allocate, lock, wait for each other and are stopped by the collector; with a bounded queue, park and timeouts.
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

public class Stops {
    static long shared;
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static long locked;

    public static void main(String[] arguments) throws Exception {
        int threads = 6;
        ArrayBlockingQueue<long[]> queue = new ArrayBlockingQueue<>(4);
        ExecutorService pool = Executors.newFixedThreadPool(threads + 1);
        List<Future<Long>> sums = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int me = t;
            sums.add(pool.submit(() -> {
                List<byte[]> kept = new ArrayList<>();
                long sum = 0;
                for (int i = 0; i < 4000; i++) {
                    byte[] some = new byte[1 + (i * 37 + me) % 20000];
                    if (i % 16 == 0) kept.add(some);
                    if (kept.size() > 100) kept.clear();
                    synchronized (monitor) { shared += some.length; monitor.notifyAll(); }
                    lock.lock();
                    try { locked++; } finally { lock.unlock(); }
                    if (i % 64 == 0) synchronized (monitor) { monitor.wait(1); }
                    if (i % 500 == 0) System.gc();
                    if (i % 8 == 0) queue.put(new long[] {i});
                    sum += some.length;
                }
                return sum;
            }));
        }
        Future<Long> taken = pool.submit(() -> {
            long sum = 0;
            for (int i = 0; i < threads * 500; i++) sum += queue.take()[0];
            return sum;
        });
        long sum = 0;
        for (Future<Long> each : sums) sum += each.get();
        System.out.println(sum + " " + shared + " " + locked + " " + taken.get());
        pool.shutdown();
        System.out.println(pool.awaitTermination(60, TimeUnit.SECONDS));
    }
}
