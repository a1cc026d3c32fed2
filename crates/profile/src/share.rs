//! The share of threads' time that they waited for locks, judged against a bound: what `spinpark gate waits` does.
//!
//! The share has an interval: at its lower end, only waits that were certainly for the lock; at its upper end also
//! returns from condition variables and waits that may be for a lock, and what sampling leaves open. Where records
//! are missing, the upper end is not known.

use serde::Serialize;

use spinpark_measure::report::gate::{Figure, Judged, Verdict};
use spinpark_measure::text::nearest::nearest;
use spinpark_measure::text::units::{count, exact_percent, percent_beside, time};

use crate::model::{Detail, Lock, Profile, Role};
use crate::silence;

/// Names in a sentence.
const FEW_NAMES: usize = 5;

/// Time waited in the processes of a recording, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waited {
    /// For one lock, or the locks of this name; none: for all.
    pub lock: Option<String>,
    /// Certainly for it.
    pub waited: u64,
    /// Returns from condition variables and waits that may be for it, besides.
    pub unclear: u64,
    /// Half the width of the 95 % interval of `waited`, where it was sampled.
    pub error: u64,
    /// The time of all threads that were not idle.
    pub thread_time: u64,
    /// How many threads.
    pub threads: u64,
    /// Why the figure may be too low, in sentences.
    pub missing: Vec<String>,
}

impl Waited {
    /// That of `profiles`: for the locks that are called `lock`, by label or without its number, or for all.
    #[must_use]
    pub fn of(profiles: &[Profile], lock: Option<&str>) -> Self {
        let mut all = Self { lock: lock.map(str::to_owned), ..Self::default() };
        for profile in profiles {
            let (threads, thread_time) = profile.threads_and_time();
            all.threads += threads;
            all.thread_time = all.thread_time.saturating_add(thread_time);
            // A program that became another one (exec), such as a script that starts it, before it used a lock.
            let is_after = |other: &Profile| {
                (other.pid, &other.host) == (profile.pid, &profile.host) && other.started > profile.started
            };
            let is_prelude = thread_time == 0 && profile.locks.is_empty() && profiles.iter().any(is_after);
            all.missing.extend(missing(profile, is_prelude));
            for (lock, stats) in
                profile.uses().filter(|(known, _)| lock.is_none_or(|it| is_called(known, it)))
            {
                match stats.role {
                    Role::Write | Role::Read => all.waited += stats.wait.total,
                    Role::Back | Role::Late => all.unclear += stats.wait.total,
                    Role::Wake => all.unclear += profile.busy_unclear(lock, stats),
                    Role::Signal => continue,
                }
                all.error += stats.error.waited;
            }
        }
        if let Some(name) = lock.filter(|name| !locks(profiles).any(|known| is_called(known, name))) {
            all.missing.push(not_found(profiles, name));
        }
        if profiles.is_empty() {
            all.missing.push(String::from("Nothing was recorded."));
        }
        all.missing.dedup();
        all
    }

    /// As a share of the threads' time: the least, what was recorded, the most; none if the time is not known.
    fn shares(&self) -> Option<[f64; 3]> {
        let share = |waited: u64| (waited as f64 / self.thread_time as f64).min(1.0);
        let most = self.waited.saturating_add(self.unclear).saturating_add(self.error);
        let shares = [self.waited.saturating_sub(self.error), self.waited, most].map(share);
        (self.thread_time > 0).then_some(shares)
    }

    /// Judges it: at most `bound` is accepted. `subject` is the recording, or the program.
    #[must_use]
    pub fn judged(&self, subject: &str, bound: f64) -> Judged {
        let shares = self.shares();
        let is_whole = self.missing.is_empty();
        let verdict = match shares {
            // What is missing can only add to it.
            Some([low, ..]) if low > bound => Verdict::Failed,
            Some([.., high]) if high <= bound && is_whole => Verdict::Passed,
            _ => Verdict::Undecided,
        };
        let locks = locks_called(self.lock.as_deref());
        let most = exact_percent(bound);
        let says = match verdict {
            Verdict::Passed => format!("Threads waited at most {most} of their time for {locks}"),
            Verdict::Failed => format!("Threads waited more than {most} of their time for {locks}"),
            Verdict::Undecided => {
                format!("Undecided whether threads waited more than {most} of their time for {locks}")
            }
        };
        let percent = |share: f64| percent_beside(share, bound);
        let figure = shares.map_or_else(
            || String::from("their time is not known"),
            |[low, share, high]| {
                let most = if is_whole { percent(high) } else { String::from("not known") };
                let threads = if self.threads == 1 { "thread" } else { "threads" };
                format!(
                    "{} [{}, {most}], {} of {} of {} {threads}",
                    percent(share),
                    percent(low),
                    time(self.waited as f64),
                    time(self.thread_time as f64),
                    count(self.threads)
                )
            },
        );
        let number = |at: usize| shares.map(|shares| shares[at]);
        Judged {
            gate: "waits",
            subject: subject.to_owned(),
            verdict,
            sentence: format!("{says}: {figure}; one run, so its noise is not known. {}", verdict.in_words()),
            figure: Figure {
                name: figure_name(self.lock.as_deref()),
                value: number(1),
                low: number(0),
                high: number(2).filter(|_| is_whole),
                noise: None,
                bound: Some(bound),
            },
            notes: self.missing.clone(),
        }
    }
}

/// What the figure is called that is judged.
#[must_use]
pub fn figure_name(lock: Option<&str>) -> String {
    format!("share of threads' time waited for {}", locks_called(lock))
}

fn locks_called(lock: Option<&str>) -> String {
    lock.map_or_else(|| String::from("locks"), |name| format!("`{name}`"))
}

fn locks(profiles: &[Profile]) -> impl Iterator<Item = &Lock> {
    profiles.iter().flat_map(|profile| &profile.locks)
}

fn is_called(lock: &Lock, name: &str) -> bool {
    lock.label == name || lock.name.as_deref() == Some(name) || lock.class() == name
}

/// What keeps the figure of a process from being all of it. `is_prelude`: it became another program, which is judged.
fn missing(profile: &Profile, is_prelude: bool) -> Vec<String> {
    let mut sentences = profile.losses();
    if profile.detail == Detail::Off {
        sentences.push(String::from("The recording has the detail `off`: no wait was recorded."));
    }
    if profile.threads_and_time().1 == 0 && !is_prelude {
        sentences.push(format!("The time of the threads of process {} is not known.", profile.pid));
    }
    sentences.extend(silence::absent(profile).filter(|(_, is_much)| *is_much).map(|(sentence, _)| sentence));
    sentences
}

/// A lock that no thread waited for is not in a recording; nor is one whose name is misspelt.
fn not_found(profiles: &[Profile], name: &str) -> String {
    let waited = locks(profiles).filter(|lock| lock.lock_wait() > 0);
    let mut names: Vec<&str> = waited.map(|lock| lock.label.as_str()).collect();
    names.dedup();
    let similar = nearest(name, names.iter().copied());
    let meant = similar.map_or_else(String::new, |similar| format!(" Is it `{similar}`?"));
    names.truncate(FEW_NAMES);
    let known = match names.is_empty() {
        true => String::from("no thread waited for any"),
        false => format!("threads waited for `{}`", names.join("`, `")),
    };
    format!("There is no lock `{name}` in the recording; {known}.{meant}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RoleStats, Thread, Times, Warning};

    const MS: u64 = 1_000_000;

    /// A process of 1 s of threads' time, in which `cache` was waited for.
    fn profile(waited: u64, back: u64, error: u64) -> Profile {
        let stats = |role, total| RoleStats {
            role,
            wait: Times { total, ..Times::default() },
            ..RoleStats::default()
        };
        let mut write = stats(Role::Write, waited * MS);
        write.error.waited = error * MS;
        let lock = Lock {
            label: String::from("cache #2"),
            roles: vec![write, stats(Role::Back, back * MS), stats(Role::Signal, 900 * MS)],
            ..Lock::default()
        };
        let threads = vec![Thread { users: 4, time: 1_000 * MS, ..Thread::default() }];
        Profile { locks: vec![lock], threads, ..Profile::default() }
    }

    fn verdict(profile: Profile, lock: Option<&str>) -> Verdict {
        Waited::of(&[profile], lock).judged("./job", 0.05).verdict
    }

    #[test]
    fn the_whole_interval_must_be_on_one_side() {
        assert_eq!(verdict(profile(40, 0, 0), None), Verdict::Passed);
        assert_eq!(verdict(profile(60, 0, 0), None), Verdict::Failed);
        assert_eq!(
            verdict(profile(40, 20, 0), None),
            Verdict::Undecided,
            "returns may be waits for the lock"
        );
        assert_eq!(verdict(profile(40, 0, 15), None), Verdict::Undecided);
        assert_eq!(verdict(profile(60, 0, 15), None), Verdict::Undecided);
        let said = Waited::of(&[profile(60, 10, 0)], None).judged("./job", 0.05).sentence;
        assert_eq!(
            said,
            "Threads waited more than 5.0 % of their time for locks: 6.0 % [6.0 %, 7.0 %], 60.0 ms of 1.000 s of 4 threads; \
             one run, so its noise is not known. The gate fails."
        );
    }

    #[test]
    fn a_lock_is_found_by_its_name_and_silence_is_no_verdict() {
        for name in ["cache #2", "cache"] {
            assert_eq!(verdict(profile(60, 0, 0), Some(name)), Verdict::Failed, "{name}");
        }
        let unknown = Waited::of(&[profile(60, 0, 0)], Some("cash")).judged("./job", 0.05);
        assert_eq!(unknown.verdict, Verdict::Undecided);
        assert!(unknown.notes[0].contains("Is it `cache #2`?"), "{:?}", unknown.notes);
        assert_eq!(Waited::of(&[], None).judged("./job", 0.05).verdict, Verdict::Undecided);
    }

    #[test]
    fn a_script_that_becomes_the_program_misses_nothing() {
        let script = |pid| Profile { pid, started: 1, ..Profile::default() };
        let program = || Profile { pid: 7, started: 2, ..profile(10, 0, 0) };
        let missing = |profiles: &[Profile]| Waited::of(profiles, None).missing;
        assert_eq!(missing(&[script(7), program()]), [""; 0]);
        assert!(missing(&[script(8), program()])[0].contains("process 8 is not known"));
        assert!(missing(&[script(7)])[0].contains("process 7 is not known"));
    }

    /// What is missing can make it more, never less.
    #[test]
    fn lost_records_leave_only_a_failure() {
        let lossy = |waited| Profile { dropped: 3, ..profile(waited, 0, 0) };
        assert_eq!(verdict(lossy(10), None), Verdict::Undecided);
        assert_eq!(verdict(lossy(60), None), Verdict::Failed);
        let loss = Warning::Loss(String::from("A process is missing."));
        assert_eq!(verdict(Profile { warnings: vec![loss], ..profile(10, 0, 0) }, None), Verdict::Undecided);
        assert_eq!(verdict(Profile { detail: Detail::Off, ..profile(0, 0, 0) }, None), Verdict::Undecided);
    }
}
