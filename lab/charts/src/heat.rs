//! A heat map as SVG. Each cell has its figure, which colour repeats, and a tooltip with what the figure is
//! made of.

use std::fmt::Write;

/// Width and height of a cell, in pixels.
const CELL: (usize, usize) = (54, 24);
/// Width of a character of a name, about.
const CHARACTER: usize = 7;
/// Height of a line of the caption.
const LINE: usize = 18;

/// A map.
#[derive(Debug, Clone)]
pub struct HeatMap<'a> {
    /// What it shows, as a whole: a tooltip.
    pub title: String,
    /// Lines above it, if it stands alone.
    pub caption: Vec<String>,
    /// The names of the rows.
    pub rows: &'a [String],
    /// The names of the columns.
    pub columns: &'a [String],
    /// By row and column; none: nothing is known there.
    pub cells: Vec<Vec<Option<HeatCell>>>,
    /// The factor at which a colour is at its strongest.
    pub strongest: f64,
}

/// A cell.
#[derive(Debug, Clone)]
pub struct HeatCell {
    /// Its figure.
    pub text: String,
    /// What that is made of: a tooltip.
    pub about: String,
    /// Above 1 is better, below is worse; a ratio.
    pub goodness: f64,
}

impl HeatMap<'_> {
    /// The SVG.
    #[must_use]
    pub fn render(&self) -> String {
        let longest =
            |names: &[String]| names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
        let left = longest(self.rows) * CHARACTER + 12;
        let width = CELL.0.max(longest(self.columns) * CHARACTER + 6);
        let above = self.caption.len() * LINE;
        let top = above + 28;
        let size = (
            (left + self.columns.len() * width).max(longest(&self.caption) * CHARACTER),
            top + self.rows.len() * CELL.1,
        );
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" \
             font-family=\"sans-serif\" font-size=\"12\"><title>{}</title>",
            size.0,
            size.1,
            size.0,
            size.1,
            escape(&self.title)
        );
        let mut text = |x: usize, y: usize, anchor: &str, fill: &str, content: &str| {
            let _ = write!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{}</text>",
                escape(content)
            );
        };
        for (place, line) in self.caption.iter().enumerate() {
            text(4, place * LINE + 14, "start", "#808080", line);
        }
        for (place, name) in self.columns.iter().enumerate() {
            text(left + place * width + width / 2, top - 10, "middle", "#808080", name);
        }
        for (place, name) in self.rows.iter().enumerate() {
            text(left - 8, top + place * CELL.1 + 16, "end", "#808080", name);
        }
        for (row, cells) in self.cells.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                let Some(cell) = cell else { continue };
                let (x, y) = (left + column * width, top + row * CELL.1);
                let _ = write!(
                    svg,
                    "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\
                     <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#000\">{}</text></g>",
                    escape(&cell.about),
                    width - 2,
                    CELL.1 - 2,
                    color(cell.goodness, self.strongest),
                    x + width / 2 - 1,
                    y + 16,
                    escape(&cell.text),
                );
            }
        }
        svg + "</svg>"
    }
}

/// Red is worse, green is better, by the logarithm of the ratio; both ends are at a factor of `strongest`.
fn color(goodness: f64, strongest: f64) -> String {
    let far = (goodness.max(1e-9).ln() / strongest.ln()).clamp(-1.0, 1.0);
    let mix = |end: [f64; 3]| {
        const MIDDLE: [f64; 3] = [235.0, 235.0, 235.0];
        let of = |place: usize| (MIDDLE[place] + (end[place] - MIDDLE[place]) * far.abs()).round() as u8;
        format!("#{:02x}{:02x}{:02x}", of(0), of(1), of(2))
    };
    if far < 0.0 { mix([232.0, 80.0, 60.0]) } else { mix([70.0, 190.0, 90.0]) }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_say_how_far_it_is_from_one() {
        let at = |goodness| color(goodness, 2.0);
        assert_eq!([at(1.0), at(2.0), at(8.0)], ["#ebebeb", "#46be5a", "#46be5a"]);
        assert_eq!([at(0.5), at(0.0)], ["#e8503c", "#e8503c"]);
    }

    #[test]
    fn a_map_is_xml_with_all_its_figures() {
        let names = |names: [&str; 2]| names.map(str::to_owned);
        let (rows, columns) = (names(["1 µs", "<2 µs"]), names(["a&b", "c"]));
        let cell = |text: &str| {
            Some(HeatCell { text: text.to_owned(), about: format!("{text} > 1"), goodness: 1.2 })
        };
        let map = HeatMap {
            title: String::from("a map"),
            caption: vec![String::from("above")],
            rows: &rows,
            columns: &columns,
            cells: vec![vec![cell("1.20"), None], vec![cell("0.90"), cell("1.00")]],
            strongest: 1.5,
        };
        let svg = map.render();
        let page = roxmltree::Document::parse(&svg).unwrap();
        let texts = |tag: &str| {
            let nodes = page.descendants().filter(|node| node.has_tag_name(tag));
            nodes.filter_map(|node| node.text()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(texts("text"), ["above", "a&b", "c", "1 µs", "<2 µs", "1.20", "0.90", "1.00"]);
        assert_eq!(texts("title"), ["a map", "1.20 > 1", "0.90 > 1", "1.00 > 1"]);
    }
}
