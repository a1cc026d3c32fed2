//! `spinpark why` of a JVM, if one is installed, with its compiler.

use std::fs;
use std::process::Command;

use spinpark_fixtures::command::{flat, said};

use crate::fixtures::spinpark;
use crate::why::Hanging;

const PROGRAM: &str = "
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.locks.ReentrantLock;
public class Bank {
    static final Object one = new Object(), other = new Object();
    static final ReentrantLock busy = new ReentrantLock();
    static final CyclicBarrier both = new CyclicBarrier(3);
    static void meet() { try { both.await(); } catch (Exception e) { throw new Error(e); } }
    static void transfer() { synchronized (one) { meet(); synchronized (other) { } } }
    static void report() { synchronized (other) { meet(); synchronized (one) { } } }
    static void wants() { busy.lock(); }
    public static void main(String[] arguments) throws Exception {
        busy.lock();
        new Thread(Bank::transfer, \"transfer\").start();
        new Thread(Bank::report, \"report\").start();
        new Thread(Bank::wants, \"a thread that wants a lock\").start();
        meet();
        System.err.println(\"ready\");
        Thread.sleep(1000000);
    }
}
";

#[test]
fn a_deadlock_of_monitors() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("Bank.java"), PROGRAM).expect("a file");
    let compiled = Command::new("javac").arg("Bank.java").current_dir(&directory).status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: no javac is installed");
        return;
    }
    let mut command = Command::new("java");
    // Messages of the JVM's own would be taken for the program's.
    command
        .args(["-Xshare:auto", "-cp", ".", "Bank"])
        .current_dir(&directory)
        .env_remove("JAVA_TOOL_OPTIONS");
    let hanging = Hanging::start(command);
    let words = [
        "Deadlock: thread",
        "(`transfer`) waits in `Bank.transfer (Bank.java:9)` for a Java monitor of Object, which thread",
        "(`report`) waits in `Bank.report (Bank.java:10)` for a Java monitor of Object, which thread",
        "from a thread dump by the JVM",
        "Bank.wants (Bank.java:11)",
        "Java ReentrantLock",
    ];
    let mut text = String::new();
    // Its threads may not wait yet, and it may be slow on a busy machine.
    for _ in 0..20 {
        // Wide enough for the lines of the source, also where numbers of threads have seven digits.
        let mut why = spinpark(["why", "--rows", "60"]);
        text = flat(&said(why.env("COLUMNS", "160").arg(hanging.0.id().to_string())).stdout);
        if words.iter().all(|words| text.contains(words)) {
            break;
        }
    }
    for words in words {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    let left = fs::read_dir(&directory).expect("it is there").flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}
