//! The program never dies of the recorder, nor waits for it: what programs do that a recorder may stumble over.

use std::path::{Path, PathBuf};

use spinpark_observe::format::Role;
use spinpark_testkit::profiled::{Recording, recordings};
use spinpark_testkit::{Arm, Run, compile_c};

/// One test per arm.
macro_rules! both_arms {
    ($($name:ident = $body:expr;)*) => {$(
        mod $name {
            use super::*;
            fn check(arm: Arm) {
                let directory = tempfile::tempdir().expect("a directory");
                let body: fn(&Path, Arm) = $body;
                body(directory.path(), arm);
            }
            #[test] fn glibc() { check(Arm::Glibc); }
            #[test] fn spinpark() { check(Arm::Spinpark); }
        }
    )*};
}

both_arms! {
    an_allocator_with_a_mutex_starts = |directory, arm| {
        let program = compile_c("profile/allocator.c", &["-fno-builtin"]);
        let outcome = Run::new(program).arm(arm).profiled(directory, "full").succeed();
        let mutex = outcome.stdout_text().trim().parse().expect("an address");
        let recording = Recording::read(&recordings(directory)[0]);
        assert!(recording.use_of(mutex, Role::Write).acquisitions > 0);
    };
    jemalloc_starts = |directory, arm| {
        let Some(library) = jemalloc() else {
            assert!(std::env::var_os("SPINPARK_REQUIRE_PROGRAMS").is_none(), "libjemalloc.so.2 is not installed");
            eprintln!("skipped: libjemalloc.so.2 is not installed (Debian: libjemalloc2)");
            return;
        };
        Run::new("sh")
            .args(["-c", "LD_PRELOAD=\"$LD_PRELOAD:$1\" exec \"$2\" fork", "sh"])
            .args([library, compile_c("profile/life.c", &["-rdynamic"])])
            .arm(arm)
            .profiled(directory, "contended")
            .succeed();
    };
}

fn jemalloc() -> Option<PathBuf> {
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    directories.iter().map(|it| Path::new(it).join("libjemalloc.so.2")).find(|it| it.exists())
}
