//! A plot per shape, as SVG: operations per second over threads, a line per target, with 95 % intervals.
//!
//! The colours are readable on light and on dark ground, and there is no ground of our own. Throughput is better
//! higher; both axes are logarithmic, so equal ratios are equal distances.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thiserror::Error;

use crate::locks::result::CellResult;

/// Size of a plot, in pixels.
const SIZE: (u32, u32) = (960, 540);

/// Text and axes: mid grey, to be read on any ground.
const GREY: RGBColor = RGBColor(128, 128, 128);

/// Paul Tol's and Okabe–Ito's colours that stand out from white and from black.
const COLORS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(230, 159, 0),
    RGBColor(170, 120, 60),
    RGBColor(150, 110, 200),
    RGBColor(204, 121, 167),
    RGBColor(120, 160, 60),
    RGBColor(213, 94, 0),
    RGBColor(220, 50, 50),
    RGBColor(128, 128, 128),
    RGBColor(60, 180, 180),
];

/// A plot that cannot be drawn.
#[derive(Debug, Error)]
#[error("cannot draw the plot of `{shape}`: {what}")]
pub struct Undrawable {
    shape: String,
    what: String,
}

/// One line.
struct Line<'a> {
    target: &'a str,
    color: RGBColor,
    /// Place on the x axis, and throughput: lower end, median, upper end.
    points: Vec<(f64, [f64; 3])>,
}

/// The plot of `shape`, whose cells are `cells`, each at another number of threads. `targets` decides colours, so that
/// a target has the same one in every plot.
///
/// # Errors
///
/// If there is nothing to draw.
pub fn render(shape: &str, cells: &[&CellResult], targets: &[String]) -> Result<String, Undrawable> {
    let lines = lines(cells, targets);
    let mut svg = String::new();
    draw(&mut svg, shape, cells, &lines).map_err(|what| Undrawable { shape: shape.to_owned(), what })?;
    Ok(svg)
}

fn lines<'a>(cells: &[&CellResult], targets: &'a [String]) -> Vec<Line<'a>> {
    let line = |(number, target): (usize, &'a String)| {
        let point = |(place, cell): (usize, &&CellResult)| {
            let own = cell.targets.iter().find(|own| own.target == *target)?;
            // Side by side, or whiskers hide each other.
            let shift = (number as f64 - targets.len() as f64 / 2.0) * 0.03;
            Some((place as f64 + shift, own.throughput))
        };
        let points: Vec<_> = cells.iter().enumerate().filter_map(point).collect();
        Line { target, color: COLORS[number % COLORS.len()], points }
    };
    let lines = targets.iter().enumerate().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn draw(svg: &mut String, shape: &str, cells: &[&CellResult], lines: &[Line<'_>]) -> Result<(), String> {
    let values = || lines.iter().flat_map(|line| &line.points).flat_map(|(_, throughput)| throughput);
    let low = values().copied().fold(f64::INFINITY, f64::min);
    let high = values().copied().fold(0.0, f64::max);
    if !(low.is_finite() && low > 0.0) {
        return Err(String::from("there is no throughput above zero"));
    }
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let grey = |size: u32| ("sans-serif", size).into_font().color(&GREY);
    let (plot, legend) = root.split_horizontally(SIZE.0 - 190);
    let mut chart = ChartBuilder::on(&plot)
        .caption(format!("{shape}: operations per second by threads (log, higher is better)"), grey(18))
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(74)
        .build_cartesian_2d(-0.5..cells.len() as f64 - 0.5, (low / 1.3..high * 1.3).log_scale())
        .map_err(text)?;
    let threads: Vec<usize> = cells.iter().map(|cell| cell.threads).collect();
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.25))
        .axis_style(GREY)
        .label_style(grey(14))
        .x_labels(cells.len() * 2 + 1)
        .x_label_formatter(&|place| x_label(*place, &threads))
        .y_label_formatter(&|value| y_label(*value))
        .x_desc("threads")
        .draw()
        .map_err(text)?;
    for line in lines {
        let middles = line.points.iter().map(|&(place, [_, middle, _])| (place, middle));
        chart.draw_series(LineSeries::new(middles, line.color.stroke_width(2))).map_err(text)?;
        let whiskers = line.points.iter().map(|&(place, [low, middle, high])| {
            ErrorBar::new_vertical(place, low, middle, high, line.color.filled(), 6)
        });
        chart.draw_series(whiskers).map_err(text)?;
    }
    draw_legend(&legend, lines)?;
    root.present().map_err(text)
}

fn draw_legend<DB: DrawingBackend>(
    area: &DrawingArea<DB, plotters::coord::Shift>,
    lines: &[Line<'_>],
) -> Result<(), String> {
    let style = ("sans-serif", 15).into_font().color(&GREY).pos(Pos::new(HPos::Left, VPos::Center));
    for (number, line) in lines.iter().enumerate() {
        let y = 60 + number as i32 * 24;
        area.draw(&PathElement::new([(6, y), (30, y)], line.color.stroke_width(3))).map_err(text)?;
        area.draw(&Text::new(line.target.to_owned(), (38, y), style.clone())).map_err(text)?;
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Only whole places have a number of threads.
fn x_label(place: f64, threads: &[usize]) -> String {
    let nearest = place.round();
    let is_whole = (place - nearest).abs() < 0.01 && nearest >= 0.0;
    is_whole.then(|| threads.get(nearest as usize)).flatten().map_or_else(String::new, usize::to_string)
}

fn y_label(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.0} G", v / 1e9),
        v if v >= 1e6 => format!("{:.0} M", v / 1e6),
        v if v >= 1e3 => format!("{:.0} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// The plots of all shapes: a file name and the SVG.
///
/// # Errors
///
/// The first plot that cannot be drawn.
pub fn render_all(results: &[CellResult], targets: &[String]) -> Result<Vec<(String, String)>, Undrawable> {
    let mut shapes: Vec<&str> = Vec::new();
    for result in results {
        if !shapes.contains(&result.shape.as_str()) {
            shapes.push(&result.shape);
        }
    }
    let plot = |shape: &str| {
        let mut cells: Vec<&CellResult> = results.iter().filter(|result| result.shape == shape).collect();
        cells.sort_by_key(|cell| cell.threads);
        Ok((format!("{shape}.svg"), render(shape, &cells, targets)?))
    };
    shapes.into_iter().map(plot).collect()
}
