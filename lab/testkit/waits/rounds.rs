// Waits of known number and length: see `rounds.h`. Programs include this file, which uses `std` only, and no
// lock of it.

const ROUNDS: usize = 10;
const HOLD: Duration = Duration::from_millis(20);

/// What a waiter and the thread that lets it go do in a round.
#[derive(Clone, Copy)]
struct Scene {
    name: &'static str,
    lets_go: fn(u32),
    comes: fn(u32),
    /// What the waiter does first.
    prepares: fn(),
}

/// A module of this name with the functions `comes`, which waits, and `lets_go`.
macro_rules! scene {
    ($name:ident: comes($round:pat) $comes:block lets_go($other:pat) $lets_go:block $(prepares $prepares:block)?) => {
        mod $name {
            use super::*;

            #[inline(never)]
            fn comes($round: u32) {
                $comes
                black_box(());
            }

            #[inline(never)]
            fn lets_go($other: u32) {
                $lets_go
                black_box(());
            }

            fn prepares() {
                $($prepares)?
            }

            pub(super) const SCENE: Scene = Scene { name: stringify!($name), lets_go, comes, prepares };
        }
    };
}

unsafe extern "C" {
    safe fn gettid() -> i32;
}

static ROUND: AtomicU32 = AtomicU32::new(0);
static READY: AtomicU32 = AtomicU32::new(0);
static COMING: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);
static WAITER: AtomicI32 = AtomicI32::new(0);
static SLEPT: AtomicU64 = AtomicU64::new(0);
static WAITED: AtomicU64 = AtomicU64::new(0);

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Lets the waiter come and fall asleep, and sleep for a while.
fn let_come() {
    let round = ROUND.load(SeqCst) + 1;
    READY.store(round, SeqCst);
    until(|| COMING.load(SeqCst) >= round);
    let path = format!("/proc/self/task/{}/stat", WAITER.load(SeqCst));
    until(|| {
        let line = std::fs::read_to_string(&path).unwrap_or_default();
        line.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S"))
    });
    let start = Instant::now();
    thread::sleep(HOLD);
    SLEPT.fetch_add(start.elapsed().as_nanos() as u64, SeqCst);
}

/// Runs the scene that the argument names, in rounds.
fn run_scene(scenes: &[Scene]) {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(scene) = scenes.iter().find(|scene| scene.name == name).copied() else {
        eprintln!("no such scene: {name}");
        std::process::exit(2);
    };
    let waiter = thread::spawn(move || {
        (scene.prepares)();
        WAITER.store(gettid(), SeqCst);
        for round in 0..black_box(ROUNDS as u32) {
            until(|| READY.load(SeqCst) > round);
            let start = Instant::now();
            COMING.store(round + 1, SeqCst);
            (scene.comes)(round);
            WAITED.fetch_add(start.elapsed().as_nanos() as u64, SeqCst);
            DONE.store(round + 1, SeqCst);
        }
        // It does not end before the program.
        until(|| false);
    });
    until(|| WAITER.load(SeqCst) != 0);
    // Each round comes from one place: the loop is not unrolled.
    for round in 0..black_box(ROUNDS as u32) {
        ROUND.store(round, SeqCst);
        (scene.lets_go)(round);
        until(|| DONE.load(SeqCst) > round);
    }
    println!("waits {ROUNDS} {} {}", SLEPT.load(SeqCst), WAITED.load(SeqCst));
    drop(waiter);
}
