//! Charts as SVG: a number over numbers of threads, a line per configuration, with intervals; and one number
//! over another, a point per configuration.
//!
//! The colours are readable on light and on dark ground, and there is no ground of our own. A chart's axes
//! are logarithmic or in equal steps, so equal ratios are equal distances.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thiserror::Error;

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
#[error("cannot draw the plot of `{name}`: {what}")]
pub struct Undrawable {
    name: String,
    what: String,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// Its name in the legend.
    pub name: &'a str,
    /// Its number among all lines, which decides the colour: a configuration has the same one in every chart.
    pub number: usize,
    /// Place on the x axis, from 0; and lower end, middle, upper end.
    pub points: Vec<(usize, [f64; 3])>,
}

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart<'a> {
    /// What it is about, in messages.
    pub name: &'a str,
    /// What stands above it.
    pub caption: String,
    /// What the x axis counts.
    pub tasks: &'a str,
    /// The numbers on the x axis.
    pub places: Vec<usize>,
    /// How many lines there would be if none were missing.
    pub names: usize,
    /// The lines.
    pub lines: Vec<Line<'a>>,
}

impl Chart<'_> {
    /// The SVG.
    ///
    /// # Errors
    ///
    /// If there is nothing to draw.
    pub fn render(&self) -> Result<String, Undrawable> {
        let mut svg = String::new();
        draw(&mut svg, self).map_err(|what| Undrawable { name: self.name.to_owned(), what })?;
        Ok(svg)
    }

    /// Side by side, or whiskers hide each other.
    fn shift(&self, line: &Line<'_>) -> f64 {
        (line.number as f64 - self.names as f64 / 2.0) * 0.03
    }
}

/// A point.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its name in the legend.
    pub name: String,
    /// As of a [`Line`].
    pub number: usize,
    /// Where it is.
    pub at: (f64, f64),
    /// A line goes through it.
    pub is_front: bool,
}

/// One number over another: a point per configuration. The x axis is logarithmic, the y axis begins at zero.
#[derive(Debug, Clone)]
pub struct Plane<'a> {
    /// What it is about, in messages.
    pub name: &'a str,
    /// What stands above it.
    pub caption: String,
    /// What the axes are, x first.
    pub axes: [&'a str; 2],
    /// The points.
    pub places: Vec<Place>,
}

impl Plane<'_> {
    /// The SVG.
    ///
    /// # Errors
    ///
    /// If there is nothing to draw.
    pub fn render(&self) -> Result<String, Undrawable> {
        let mut svg = String::new();
        draw_plane(&mut svg, self).map_err(|what| Undrawable { name: self.name.to_owned(), what })?;
        Ok(svg)
    }
}

/// From somewhat below the least value to somewhat above the greatest.
fn around(values: impl Iterator<Item = f64>) -> Option<std::ops::Range<f64>> {
    let (low, high) =
        values.fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)));
    (low > 0.0 && low.is_finite() && high.is_finite()).then_some(low / 1.3..high * 1.3)
}

fn draw_plane(svg: &mut String, plane: &Plane<'_>) -> Result<(), String> {
    let Plane { caption, axes: [x, y], places, .. } = plane;
    let none = || String::from("there is no number above zero");
    let across = around(places.iter().map(|place| place.at.0)).ok_or_else(none)?;
    let up = 0.0..around(places.iter().map(|place| place.at.1)).ok_or_else(none)?.end;
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let grey = |size: u32| ("sans-serif", size).into_font().color(&GREY);
    let lines: Vec<Line<'_>> = places
        .iter()
        .map(|place| Line { name: &place.name, number: place.number, points: Vec::new() })
        .collect();
    let (area, legend) = root.split_horizontally(SIZE.0 - legend_width(&lines));
    let mut chart = ChartBuilder::on(&area)
        .caption(caption, grey(18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(74)
        .build_cartesian_2d(across.log_scale(), up)
        .map_err(text)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.25))
        .axis_style(GREY)
        .label_style(grey(14))
        .x_label_formatter(&|value| format!("{value:.2}"))
        .y_label_formatter(&|value| format!("{value:.2}"))
        .x_desc(*x)
        .y_desc(*y)
        .draw()
        .map_err(text)?;
    let mut front: Vec<(f64, f64)> =
        places.iter().filter(|place| place.is_front).map(|place| place.at).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    chart.draw_series(LineSeries::new(front, GREY.mix(0.6).stroke_width(2))).map_err(text)?;
    for (place, line) in places.iter().zip(&lines) {
        let style = if place.is_front { color(line).filled() } else { color(line).stroke_width(2) };
        chart.draw_series([Circle::new(place.at, 6, style)]).map_err(text)?;
    }
    draw_legend(&legend, &lines)?;
    root.present().map_err(text)
}

fn draw(svg: &mut String, chart_of: &Chart<'_>) -> Result<(), String> {
    let Chart { caption, tasks, places, lines, .. } = chart_of;
    let values = || lines.iter().flat_map(|line| &line.points).flat_map(|(_, ends)| ends);
    let low = values().copied().fold(f64::INFINITY, f64::min);
    let high = values().copied().fold(0.0, f64::max);
    if !(low.is_finite() && low > 0.0) {
        return Err(String::from("there is no number above zero"));
    }
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let grey = |size: u32| ("sans-serif", size).into_font().color(&GREY);
    let (plot, legend) = root.split_horizontally(SIZE.0 - legend_width(lines));
    let mut chart = ChartBuilder::on(&plot)
        .caption(caption, grey(18))
        .margin(12)
        .x_label_area_size(34)
        .y_label_area_size(74)
        .build_cartesian_2d(-0.5..places.len() as f64 - 0.5, (low / 1.3..high * 1.3).log_scale())
        .map_err(text)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.25))
        .axis_style(GREY)
        .label_style(grey(14))
        .x_labels(places.len() * 2 + 1)
        .x_label_formatter(&|place| x_label(*place, places))
        .y_label_formatter(&|value| y_label(*value))
        .x_desc(*tasks)
        .draw()
        .map_err(text)?;
    for line in lines {
        let (shift, color) = (chart_of.shift(line), color(line));
        let middles = line.points.iter().map(|&(place, [_, middle, _])| (place as f64 + shift, middle));
        chart.draw_series(LineSeries::new(middles, color.stroke_width(2))).map_err(text)?;
        let whiskers = line.points.iter().map(|&(place, [low, middle, high])| {
            ErrorBar::new_vertical(place as f64 + shift, low, middle, high, color.filled(), 6)
        });
        chart.draw_series(whiskers).map_err(text)?;
    }
    draw_legend(&legend, lines)?;
    root.present().map_err(text)
}

/// As much as the longest name takes.
fn legend_width(lines: &[Line<'_>]) -> u32 {
    let longest = lines.iter().map(|line| line.name.chars().count() as u32).max().unwrap_or_default();
    (48 + 8 * longest).clamp(190, SIZE.0 / 3)
}

fn color(line: &Line<'_>) -> RGBColor {
    COLORS[line.number % COLORS.len()]
}

fn draw_legend<DB: DrawingBackend>(
    area: &DrawingArea<DB, plotters::coord::Shift>,
    lines: &[Line<'_>],
) -> Result<(), String> {
    let style = ("sans-serif", 15).into_font().color(&GREY).pos(Pos::new(HPos::Left, VPos::Center));
    for (number, line) in lines.iter().enumerate() {
        let y = 60 + number as i32 * 24;
        area.draw(&PathElement::new([(6, y), (30, y)], color(line).stroke_width(3))).map_err(text)?;
        area.draw(&Text::new(line.name.to_owned(), (38, y), style.clone())).map_err(text)?;
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
