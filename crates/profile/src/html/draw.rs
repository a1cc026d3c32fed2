//! Small pictures as SVG: histograms and strips. Colours come from the style.

use std::fmt::Write;

use super::span;
use crate::model::Strip;

/// Width of a bar.
const BAR: usize = 5;
/// Height of a small picture.
const HEIGHT: usize = 24;
/// Width of a small strip.
const WIDTH: u64 = 96;

/// From the first bin with something in any of the histograms to after the last.
pub(super) fn range<'a>(histograms: impl Iterator<Item = &'a [u64]>) -> (usize, usize) {
    let (mut low, mut high) = (usize::MAX, 0);
    for bins in histograms {
        if let Some(first) = bins.iter().position(|count| *count > 0) {
            low = low.min(first);
            high = high.max(bins.iter().rposition(|count| *count > 0).unwrap_or(first) + 1);
        }
    }
    (low.min(high), high)
}

/// A histogram; the highest bar has the full height. `is_rich`: each bar has a title, else the picture has
/// one for all.
pub(super) fn histogram(bins: &[u64], (low, high): (usize, usize), is_rich: bool) -> String {
    let highest = bins.iter().copied().max().unwrap_or_default();
    if highest == 0 {
        return String::new();
    }
    let width = (high - low) * BAR;
    let mut svg =
        format!("<svg class=\"bars\" role=\"img\" width=\"{width}\" viewBox=\"0 0 {width} {HEIGHT}\">");
    let shown = bins.iter().enumerate().take(high).skip(low).filter(|(_, count)| **count > 0);
    let title = |bin: usize, count: u64| {
        format!("{} to {}: {count}", span(if bin == 0 { 0 } else { 1 << bin }), span(2 << bin))
    };
    let height = |count: u64| ((count as f64 / highest as f64 * HEIGHT as f64).round() as usize).max(1);
    if is_rich {
        for (bin, count) in shown {
            let (x, height) = ((bin - low) * BAR, height(*count));
            // Written to a string, which cannot fail; so too below.
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{height}\"><title>{}</title></rect>",
                HEIGHT - height,
                BAR - 1,
                title(bin, *count)
            );
        }
    } else {
        let titles: Vec<String> = shown.clone().map(|(bin, count)| title(bin, *count)).collect();
        let _ = write!(svg, "<title>{}</title><path d=\"", titles.join(", "));
        for (bin, count) in shown {
            let _ = write!(svg, "M{} {HEIGHT}v-{}h{}V{HEIGHT}z", (bin - low) * BAR, height(*count), BAR - 1);
        }
        svg += "\" />";
    }
    svg + "</svg>"
}

/// The whole run's strip as a small picture, from its start to its end.
pub(super) fn small_strip(strip: &Strip, duration: u64) -> String {
    let highest = strip.waited.iter().copied().max().unwrap_or_default();
    if highest == 0 || strip.part == 0 {
        return String::new();
    }
    // A part is as wide as one unit of the picture's own.
    let end = (duration as f64 / strip.part as f64).max(strip.waited.len() as f64);
    let mut svg = format!(
        "<svg class=\"strip\" role=\"img\" width=\"{WIDTH}\" viewBox=\"0 0 {end:.1} {HEIGHT}\" preserveAspectRatio=\"none\"><title>at most {} in {}</title><path d=\"M0 {HEIGHT}",
        span(highest),
        span(strip.part)
    );
    for ns in &strip.waited {
        let height = (*ns as f64 / highest as f64 * HEIGHT as f64).ceil() as usize;
        let _ = write!(svg, "V{}h1", HEIGHT - height);
    }
    let _ = write!(svg, "V{HEIGHT}z\" /></svg>");
    svg
}

/// The same, large, with a title for each part.
pub(super) fn large_strip(strip: &Strip, duration: u64, class: &str) -> String {
    const WIDTH: f64 = 1000.0;
    const HEIGHT: f64 = 100.0;
    let highest = strip.waited.iter().copied().max().unwrap_or_default();
    if highest == 0 || strip.part == 0 {
        return String::new();
    }
    let end = duration.max(strip.part * strip.waited.len() as u64) as f64;
    let width = strip.part as f64 / end * WIDTH;
    let mut svg = format!(
        "<svg class=\"strip large {class}\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\">"
    );
    for (number, ns) in strip.waited.iter().enumerate() {
        let height = if *ns == 0 { 0.0 } else { (*ns as f64 / highest as f64 * HEIGHT).max(1.0) };
        let from = number as u64 * strip.part;
        let _ = write!(
            svg,
            "<g><title>{} to {}: waits that ended here took {} in all</title><rect class=\"all\" x=\"{x:.2}\" y=\"0\" width=\"{width:.2}\" height=\"{HEIGHT}\" /><rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{height:.2}\" /></g>",
            span(from),
            span(from + strip.part),
            span(*ns),
            HEIGHT - height,
            width * 0.9,
            x = number as f64 * width,
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_have_a_bar_for_each_bin() {
        let bins = [0, 0, 4, 0, 8];
        let range = range([&bins[..], &[0, 0]].into_iter());
        assert_eq!(range, (2, 5));
        let svg = histogram(&bins, range, true);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(
            svg.contains("<title>16.0 ns to 32.0 ns: 8</title>") && svg.contains("height=\"12\""),
            "{svg}"
        );
        assert_eq!(histogram(&bins, range, false).matches("<title>").count(), 1);
        assert_eq!(histogram(&[0], (0, 0), true), "");
    }

    #[test]
    fn strips_of_different_parts_add_up() {
        let strips = [Strip { part: 10, waited: vec![1, 2, 3] }, Strip { part: 20, waited: vec![10, 20] }];
        let sum = Strip::sum(strips.iter());
        assert_eq!((sum.part, sum.waited), (20, vec![13, 23]));
        let empty = Strip::sum([].iter());
        assert_eq!((small_strip(&empty, 10), large_strip(&empty, 10, "")), Default::default());
        // A wait that began long before: no number of threads can be had from it.
        let late = large_strip(&Strip { part: 1_000_000, waited: vec![0, 64_360_000] }, 2_000_000, "");
        assert!(
            late.contains("<title>1.00 ms to 2.00 ms: waits that ended here took 64.4 ms in all</title>"),
            "{late}"
        );
    }
}
