//! The machine as its kernel describes it (proc(5)). What it does not say is zero.

use box_api::page::MachineUsage;
use std::path::Path;

/// Ticks of all CPUs since the machine began: those with work, and all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    busy: u64,
    all: u64,
    cpus: u32,
}

pub(super) async fn ticks() -> Ticks {
    let text = tokio::fs::read_to_string("/proc/stat").await;
    read_ticks(&text.unwrap_or_default())
}

/// Since the first look.
pub(super) async fn usage(data: &Path, before: Ticks) -> MachineUsage {
    let now = ticks().await;
    let memory = tokio::fs::read_to_string("/proc/meminfo").await;
    let memory = memory.unwrap_or_default();
    let (disk_bytes, disk_free_bytes) = rustix::fs::statvfs(data).map_or((0, 0), |disk| {
        (disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize)
    });
    MachineUsage {
        cpus: now.cpus,
        cpu_milli: busy_milli(before, now),
        memory_bytes: kilobytes(&memory, "MemTotal:") << 10,
        memory_free_bytes: kilobytes(&memory, "MemAvailable:") << 10,
        disk_bytes,
        disk_free_bytes,
    }
}

/// `cpu  user nice system idle iowait irq softirq steal …`, then a line for each CPU.
fn read_ticks(text: &str) -> Ticks {
    const IDLE: [usize; 2] = [3, 4];
    // What guests use is in the first two already.
    const COUNTED: usize = 8;
    let mut lines = text.lines();
    let first = lines.next().and_then(|line| line.strip_prefix("cpu "));
    let numbers = first.unwrap_or_default().split_ascii_whitespace();
    let numbers: Vec<u64> = numbers
        .take(COUNTED)
        .map(|number| number.parse().unwrap_or_default())
        .collect();
    let all = numbers.iter().sum();
    let idle: u64 = IDLE.iter().filter_map(|at| numbers.get(*at)).sum();
    let cpus = lines.filter(|line| line.starts_with("cpu")).count();
    Ticks {
        busy: all - idle,
        all,
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    }
}

/// Thousandths of a CPU that were busy between two looks.
fn busy_milli(before: Ticks, now: Ticks) -> u32 {
    let all = now.all.saturating_sub(before.all);
    if all == 0 {
        return 0;
    }
    let busy = now.busy.saturating_sub(before.busy).min(all);
    let milli = u128::from(busy) * u128::from(now.cpus) * 1000 / u128::from(all);
    u32::try_from(milli).unwrap_or(u32::MAX)
}

fn kilobytes(text: &str, name: &str) -> u64 {
    let mut found = text.lines().filter_map(|line| line.strip_prefix(name));
    let number = found.next().and_then(|rest| {
        let number = rest.split_ascii_whitespace().next()?;
        number.parse().ok()
    });
    number.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let before = read_ticks("cpu  100 0 100 700 100 0 0 0 9 9\ncpu0 1\ncpu1 2\nintr 5\n");
        let expected = Ticks {
            busy: 200,
            all: 1000,
            cpus: 2,
        };
        assert_eq!(before, expected);
        let now = read_ticks("cpu  150 0 150 800 100 0 0 0 9 9\ncpu0 1\ncpu1 2\n");
        assert_eq!(busy_milli(before, now), 1000, "half of two CPUs");
        assert_eq!(busy_milli(now, now), 0);
        assert_eq!(read_ticks(""), Ticks::default());
        let memory = "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\n";
        assert_eq!(kilobytes(memory, "MemAvailable:"), 512);
    }
}
