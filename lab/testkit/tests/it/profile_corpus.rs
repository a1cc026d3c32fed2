//! The corpus of truth: programs with one known bottleneck each, and the sentence that a report has to begin
//! with.
//!
//! Each program is recorded with glibc's locks and with spinpark's, with the details `contended` and `full`.
//! What it waits for is fixed by construction (turns, and sleeps as sections), so the lock, its holder, the
//! waiter and their shares are the same on a loaded machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use spinpark_profile::load;
use spinpark_profile::model::Profile;
use spinpark_profile::summary::{Summary, summary};
use spinpark_profile::symbols::Symbols;
use spinpark_testkit::programs::{PERL, RUBY, installed, private_dir};
use spinpark_testkit::{Configuration, Run, compile_c, scratch_dir};

/// A report, as a reader has it.
struct Report {
    profile: Profile,
    summary: Summary,
    /// How it was recorded, for messages.
    by: String,
}

impl Report {
    /// Records the program that `run` makes.
    fn of(run: Run, configuration: Configuration, detail: &str) -> Report {
        let directory = private_dir();
        run.configuration(configuration).profiled(directory.path(), detail).succeed();
        let loaded = load::load(directory.path(), &mut Symbols::new()).expect("a recording");
        let [profile] = <[Profile; 1]>::try_from(loaded.profiles).expect("one process");
        let summary = summary(&profile);
        Report { profile, summary, by: format!("{configuration:?}, {detail}") }
    }

    /// The first sentence has these words.
    #[track_caller]
    fn begins_with(&self, words: &[&str]) {
        let headline = &self.summary.headline;
        // Where the acquisition was not noted, the release is what names the holder.
        let said = headline.replace("released in `", "held by `");
        for part in words {
            assert!(said.contains(part), "{}: no `{part}` in: {headline}", self.by);
        }
    }

    /// Some sentence has these words.
    #[track_caller]
    fn says(&self, words: &str) {
        let all = [std::slice::from_ref(&self.summary.headline), &self.summary.details].concat();
        assert!(
            all.iter().any(|sentence| sentence.contains(words)),
            "{}: no `{words}` in: {all:#?}",
            self.by
        );
    }

    /// Of the time for which locks were held while threads waited, this share has no known holder at most.
    #[track_caller]
    fn not_known(&self, most: f64) {
        let pairs = || self.profile.pairs.iter().filter(|pair| pair.role.is_lock());
        let sum = |is_counted: fn(&&spinpark_profile::model::Pair) -> bool| {
            pairs().filter(is_counted).map(|pair| pair.held()).sum::<u64>() as f64
        };
        let share = sum(|pair| pair.holder.is_none()) / sum(|_| true);
        assert!(share <= most, "{}: the holder is not known for {share:.3} of the time waited", self.by);
    }
}

/// Records a program in all ways, and checks each report.
#[track_caller]
fn check(run: impl Fn() -> Run, truth: impl Fn(&Report)) {
    for configuration in Configuration::BOTH {
        // With `full`, one recording in some hundred had a share below 0.0005. Why is not known: a thread may be
        // preempted after it has taken a lock, and before it has noted that.
        for (detail, not_known) in [("contended", 0.1), ("full", 0.001)] {
            let report = Report::of(run(), configuration, detail);
            if std::env::var_os("SURVEY").is_some() {
                eprintln!("{}: {}\n    {:?}", report.by, report.summary.headline, report.summary.details);
                continue;
            }
            report.not_known(not_known);
            truth(&report);
        }
    }
}

fn c(name: &str) -> impl Fn() -> Run {
    let program = compile_c(Path::new("profile/corpus").join(name), &[]);
    move || Run::new(&program)
}

/// The compiler's product, beside the others.
fn build(compiler: &str, arguments: &[&str], source: &str, name: &str) -> PathBuf {
    let product = scratch_dir().join(format!("{}-{name}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("profile/corpus").join(source);
    let status = Command::new(std::env::var(compiler).unwrap_or_else(|_| compiler.to_lowercase()))
        .args(arguments)
        .arg("-o")
        .arg(&product)
        .arg(source)
        .status()
        .expect("a compiler");
    assert!(status.success());
    product
}

#[test]
fn long_holder_that_never_waits() {
    check(c("long_holder.c"), |report| {
        report.begins_with(&[
            "All waiting",
            "`catalogue_lock`",
            "held by `rebuild_index`",
            "`look_up_price` waits",
        ]);
    });
}

#[test]
fn a_long_holder_among_many_short_ones() {
    check(c("long_among_short.c"), |report| {
        report.begins_with(&["`index_lock`", "held by `rebuild_index`", "`look_up` waits"]);
        // Those that hold it for a moment do so for a small part of what is held: 0.01 where they are not
        // preempted meanwhile, up to 0.15 with three busy threads beside them on two CPUs, 0.85 and more if
        // short holds push the long one out.
        let held = |name: &str| {
            let pairs = report.profile.pairs.iter().filter(|pair| pair.role.is_lock());
            let is_by = |holder: usize| report.profile.call_sites[holder].function() == name;
            pairs.filter(|pair| pair.holder.is_some_and(is_by)).map(|pair| pair.held()).sum::<u64>() as f64
        };
        let part = held("look_up") / held("rebuild_index");
        assert!(part < 0.3, "{}: {part}", report.by);
    });
}

#[test]
fn many_call_sites() {
    check(c("many_sites.c"), |report| {
        report.begins_with(&["All waiting", "`registry_lock`", "held by `site_53`", "`query` waits"]);
    });
}

#[test]
fn deep_stack() {
    check(c("deep_stack.cpp"), |report| {
        report.begins_with(&[
            "All waiting",
            "tree_mutex",
            "held by `tree::Rebalance::visit`",
            "`tree::Search::visit` waits",
        ]);
    });
}

#[test]
#[cfg(target_arch = "x86_64")]
fn made_code() {
    check(c("made_code.c"), |report| {
        report.begins_with(&["All waiting", "`table_lock`"]);
        let stack = |site: usize| {
            let frames = &report.profile.call_sites[site].frames;
            frames.iter().filter_map(|frame| frame.function.as_deref()).take(4).collect::<Vec<_>>()
        };
        let pairs = report.profile.pairs.iter().filter(|pair| pair.role.is_lock());
        let most = pairs.max_by_key(|pair| pair.held()).expect("a wait");
        assert_eq!(stack(most.waiter), ["with_lock", "made::look_up::inner", "made::look_up", "answer"]);
        let holder = most.holder.map(stack).unwrap_or_default();
        assert_eq!(
            holder,
            ["with_lock", "made::rebuild::inner", "made::rebuild", "refresh"],
            "{}",
            report.by
        );
    });
}

#[test]
fn reader_writer() {
    check(c("reader_writer.cpp"), |report| {
        report.begins_with(&["All waiting", "held by `Cache::refill`", "`Cache::get` waits"]);
        report.says("readers waited 100 %");
    });
}

#[test]
fn nested() {
    check(c("nested.c"), |report| {
        report.says("held by `flush_log`");
        report.says("log_lock");
    });
}

#[test]
fn tail_call() {
    check(c("tail_call.c"), |report| {
        report.begins_with(&["All waiting", "`ledger_lock`", "`read_ledger` waits"]);
        let holder =
            if report.by.contains("full") { "held by `open_ledger`" } else { "released in `close_ledger`" };
        assert!(report.summary.headline.contains(holder), "{}: {}", report.by, report.summary.headline);
    });
}

#[test]
fn first_wait() {
    check(c("first_wait.c"), |report| {
        report.begins_with(&[
            "All waiting",
            "`schema_lock`",
            "held by `migrate_schema`",
            "`prepare_statement` waits",
        ]);
    });
}

#[test]
fn hand_over_round() {
    check(c("hand_over.c"), |report| {
        report.begins_with(&["All waiting", "`baton`", "held by `run_stage` while other threads wait in it"]);
    });
}

#[test]
fn convoy() {
    check(c("convoy.c"), |report| {
        report.begins_with(&["All waiting", "`queue_lock`", "held by `push` while other threads wait in it"]);
    });
}

#[test]
fn lock_that_does_not_matter() {
    check(c("harmless.c"), |report| {
        report.begins_with(&["Threads waited"]);
    });
}

/// Locks that a program makes of a mutex and condition variables are locks; queues, barriers and workers are
/// none.
#[test]
fn made_locks() {
    for (how, words) in [
        ("lock", ["held by `rebuild`", "wait"]),
        ("inside", ["held by `rebuild`", "wait"]),
        ("fifo", ["`place_order`", "wait"]),
        ("readers", ["held by `rebuild`", "wait"]),
    ] {
        let program = compile_c("profile/corpus/made_locks.c", &[]);
        let report = Report::of(Run::new(&program).arg(how), Configuration::Glibc, "contended");
        report.begins_with(&["condvar-based", "`catalogue`"]);
        report.begins_with(&words);
        let locks = report.profile.locks.iter().filter(|lock| lock.is_made && lock.lock_wait() > 0);
        assert_eq!(locks.count(), 1, "{how}: one lock, whatever it is made of");
        let signals = report.profile.signal_wait() as f64;
        assert!(signals < 0.1 * report.profile.lock_wait() as f64, "{how}: {signals}");
    }
    for how in ["queue", "meet", "tasks"] {
        let program = compile_c("profile/corpus/made_locks.c", &[]);
        let report = Report::of(Run::new(&program).arg(how), Configuration::Glibc, "contended");
        assert!(report.profile.locks.iter().all(|lock| !lock.is_made), "{how}: {}", report.summary.headline);
        assert!(report.profile.signal_wait() > 0, "{how}");
    }
}

/// Threads of Python that compute wait for the interpreter lock, whose turns are signals of a condition
/// variable.
#[test]
fn python() {
    let Some(python) =
        ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|it| Path::new(it).exists())
    else {
        assert!(std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none(), "python3 is not installed");
        eprintln!("skipped: python3 is not installed (Debian: python3)");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("profile/corpus/threads.py");
    for configuration in Configuration::BOTH {
        let report = Report::of(Run::new(python).arg(&script), configuration, "contended");
        report.begins_with(&[
            "Threads waited",
            "for `CPython's GIL`",
            "one thread at a time runs Python code",
        ]);
    }
}

/// The locks of runtimes that make them of a mutex and condition variables, each with the first sentence
/// about it.
#[test]
fn runtimes() {
    for (program, script, name) in
        [(RUBY, "threads.rb", "`Ruby's GVL`"), (PERL, "threads.pl", "`Perl's shared variable")]
    {
        if !installed(&[program]) {
            continue;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("profile/corpus").join(script);
        for configuration in Configuration::BOTH {
            let report = Report::of(program.run().arg(&script), configuration, "contended");
            report.begins_with(&[" waiting is on one condvar-based lock", name]);
        }
    }
}

#[test]
fn plugin() {
    let library = build("CC", &["-O2", "-g", "-pthread", "-shared", "-fPIC"], "library.c", "plugin.so");
    let program = compile_c("profile/corpus/library_user.c", &[]);
    check(
        || Run::new(&program).arg(&library),
        |report| {
            report.begins_with(&[
                "All waiting",
                "`context_lock`",
                "held by `inner_hold`",
                "`inner_wait` waits",
            ]);
        },
    );
}

#[test]
fn stripped_library() {
    let library = build("CC", &["-O2", "-s", "-pthread", "-shared", "-fPIC"], "library.c", "vendor.so");
    let program = compile_c("profile/corpus/library_user.c", &[]);
    check(
        || Run::new(&program).arg(&library),
        |report| {
            report.begins_with(&[
                "All waiting",
                "held by `vendor_launch",
                "`vendor_copy",
                "called by `copier`",
            ]);
        },
    );
}

#[test]
fn rust_closures() {
    let program = build("RUSTC", &["--edition=2024", "-O", "-g"], "closures.rs", "closures");
    check(
        || Run::new(&program),
        |report| {
            report.begins_with(&[
                "All waiting",
                "HANDLE",
                "checkpointer::{closure}`",
                "committer::{closure}` waits",
            ]);
        },
    );
}
