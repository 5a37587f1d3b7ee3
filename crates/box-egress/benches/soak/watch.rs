//! What box-egress holds over time, and whether that is flat.

use super::acts::Tally;
use super::process::{resident_bytes, to_f64};
use std::sync::atomic::Ordering;
use std::time::Instant;

const MIB: f64 = 1_048_576.0;
/// The last third may hold so much more than the third before it.
const GROWTH_MAX: f64 = 1.10;
const DESCRIPTORS_MORE_MAX: f64 = 50.0;

pub(crate) struct Watch {
    pid: u32,
    begin: Instant,
    /// Resident bytes and open descriptors at each look.
    looks: Vec<(f64, f64)>,
}

pub(crate) struct Verdict {
    pub(crate) is_good: bool,
    pub(crate) line: String,
}

impl Watch {
    pub(crate) fn new(pid: u32) -> Self {
        Self {
            pid,
            begin: Instant::now(),
            looks: Vec::new(),
        }
    }

    pub(crate) fn look(&mut self) {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).map_or(0, Iterator::count);
        let resident = to_f64(resident_bytes(self.pid));
        self.looks.push((resident, to_f64(open as u64)));
    }

    pub(crate) fn verdict(&self, tally: &Tally, broken_clients: usize) -> Verdict {
        let third = (self.looks.len() / 3).max(1);
        let mean = |from: usize, of: fn(&(f64, f64)) -> f64| {
            let part = self.looks.get(from..).unwrap_or_default();
            let part = part.get(..third.min(part.len())).unwrap_or_default();
            part.iter().map(of).sum::<f64>() / to_f64(part.len().max(1) as u64)
        };
        let [before, after] = [third, 2 * third].map(|from| mean(from, |look| look.0));
        let [open_before, open_after] = [third, 2 * third].map(|from| mean(from, |look| look.1));
        let wrong = tally.wrong.load(Ordering::Relaxed);
        let acts = tally.acts.load(Ordering::Relaxed);
        let is_flat =
            after <= before * GROWTH_MAX && open_after <= open_before + DESCRIPTORS_MORE_MAX;
        let line = serde_json::json!({
            "seconds": self.begin.elapsed().as_secs(),
            "acts": acts,
            "mib_carried": tally.bytes.load(Ordering::Relaxed) >> 20,
            "wrong": wrong,
            "resident_mib": [before / MIB, after / MIB],
            "descriptors": [open_before, open_after],
            "flat": is_flat,
            "broken_clients": broken_clients,
        });
        Verdict {
            is_good: is_flat && wrong == 0 && acts > 0 && broken_clients == 0,
            line: line.to_string(),
        }
    }
}
