//! What was found, a row a contestant: the median of each figure over the rounds.

use std::collections::BTreeMap;

/// Figures of one round, under the names `--json` gives them.
pub(crate) type Found = Vec<(&'static str, f64)>;

const COLUMNS: [&str; 8] = [
    "gbit_s",
    "cpu_s_per_gib",
    "p50_us",
    "p99_us",
    "connects_s",
    "requests_s",
    "cpu_us_per_request",
    "kib_per_idle_tunnel",
];

#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<(&'static str, BTreeMap<&'static str, Vec<f64>>)>,
}

impl Rows {
    pub(crate) fn add(&mut self, contestant: &'static str, found: &Found) {
        let at = self.rows.iter().position(|(name, _)| *name == contestant);
        let at = at.unwrap_or_else(|| {
            self.rows.push((contestant, BTreeMap::new()));
            self.rows.len() - 1
        });
        for (figure, value) in found {
            self.rows[at].1.entry(figure).or_default().push(*value);
        }
    }

    pub(crate) fn print_table(&self) {
        print!("{:<12}", "");
        for column in COLUMNS {
            print!(" {column:>20}");
        }
        println!();
        for (name, figures) in &self.rows {
            print!("{name:<12}");
            for column in COLUMNS {
                match figures.get(column).map(|values| median(values)) {
                    Some(value) => print!(" {value:>20.2}"),
                    None => print!(" {:>20}", "–"),
                }
            }
            println!();
        }
    }

    pub(crate) fn print_json(&self) {
        let rows: Vec<serde_json::Value> = self
            .rows
            .iter()
            .map(|(name, figures)| {
                let mut row = serde_json::json!({ "name": name });
                row["n"] = figures
                    .values()
                    .map(Vec::len)
                    .max()
                    .unwrap_or_default()
                    .into();
                for (figure, values) in figures {
                    row[*figure] = median(values).into();
                }
                row
            })
            .collect();
        println!("{}", serde_json::json!({ "rows": rows }));
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
