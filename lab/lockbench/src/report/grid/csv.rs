//! A line per cell and implementation, for spreadsheets.

use crate::locks::comparison::Compared;
use crate::locks::figure::Figure;
use crate::locks::result::CellResult;

/// The figures with columns of their own.
const FIGURES: [Figure; 6] =
    [Figure::Throughput, Figure::Cpu, Figure::WaitP999, Figure::LongestWait, Figure::Futex, Figure::Switches];

/// All cells.
#[must_use]
pub fn render(results: &[CellResult]) -> String {
    let mut text = String::from(
        "plane,table,row,column,threads,implementation,throughput_per_s,cpu_ns,wait_p999_ns,longest_wait_ns,futex_calls,\
         voluntary_switches,throughput_of_best,best_peer,throughput_of_glibc,share_of_ideal\n",
    );
    for result in results {
        let Some(place) = &result.place else { continue };
        for of_implementation in &result.implementations {
            let (implementation, figures) = (&of_implementation.implementation, &of_implementation.figures);
            let names = [&place.plane, &place.table, &place.row, &place.column].map(|name| quoted(name));
            let mut fields: Vec<String> = names.to_vec();
            fields.extend([result.threads.to_string(), quoted(implementation)]);
            fields.extend(FIGURES.iter().map(|figure| figures.get(figure).map_or_else(String::new, number)));
            let of_ours = result.ratios.get(implementation);
            let throughput = of_ours.and_then(|ratios| ratios.get(&Figure::Throughput));
            let best = throughput.and_then(|ratios| ratios.best.as_ref());
            let glibc = throughput.and_then(|ratios| ratios.glibc.as_ref());
            let ideal = of_ours.and_then(|ratios| ratios.get(&Figure::Ideal)?.ideal.as_ref());
            let ratio = |compared: Option<&Compared>| {
                compared.map_or_else(String::new, |compared| format!("{:.4}", compared.ratio))
            };
            fields.push(ratio(best));
            fields.push(best.map_or_else(String::new, |best| quoted(&best.with)));
            fields.extend([ratio(glibc), ratio(ideal)]);
            text += &fields.join(",");
            text.push('\n');
        }
    }
    text
}

fn number(value: &f64) -> String {
    if *value < 10.0 { format!("{value:.7}") } else { format!("{value:.0}") }
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
