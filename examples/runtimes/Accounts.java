import java.io.*;
import java.util.concurrent.locks.ReentrantLock;

public class Accounts {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();

    static void write(FileOutputStream file) {
        try { file.write(1); file.getFD().sync(); } catch (IOException e) { throw new UncheckedIOException(e); }
    }
    static void deposit(FileOutputStream file) {
        synchronized (monitor) { write(file); }
    }
    static void withdraw(FileOutputStream file) {
        lock.lock();
        try { write(file); } finally { lock.unlock(); }
    }
    public static void main(String[] arguments) throws IOException {
        boolean deposits = arguments[0].equals("deposit");
        for (int i = 0; i < 4; i++) {
            FileOutputStream file = new FileOutputStream("journal." + i);
            new Thread(() -> {
                for (int n = 0; n < 4000; n++) {
                    if (deposits) deposit(file); else withdraw(file);
                }
            }).start();
        }
    }
}
