//! Saying what was found about locks: tables of workloads, heat maps of planes, bounds, JSON.

pub mod bounds;
pub mod document;
pub mod grid;
pub mod locks;

use spinpark_measure::stats::Ratio;

/// What stands where there is no number.
pub fn dash() -> String {
    String::from("–")
}

/// `[0.95, 1.02]`.
pub fn interval(ratio: &Ratio) -> String {
    let end = |value: f64| if value < 99.995 { format!("{value:.2}") } else { format!("{value:.0}") };
    format!("[{}, {}]", end(ratio.low), end(ratio.high))
}

/// `16`, or `16*` if that is more than there are CPUs.
pub fn threads(threads: usize, cpus: usize) -> String {
    format!("{threads}{}", if threads > cpus { "*" } else { "" })
}

/// A ratio in four or five characters.
fn figure(ratio: f64) -> String {
    match ratio {
        r if r < 9.995 => format!("{r:.2}"),
        r if r < 99.95 => format!("{r:.1}"),
        r if r < 99_999.5 => format!("{r:.0}"),
        r => format!("{r:.0e}"),
    }
}
