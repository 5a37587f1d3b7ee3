//! Whether the machine has memory for what may never be used.

/// Memory of the machine, bytes (`/proc/meminfo` of proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) available: u64,
    pub(super) total: u64,
}

/// The part of all memory that is to stay available, unless the settings say how much.
const RESERVE_PART: u64 = 10;

impl Memory {
    /// As it is now; nothing available where it cannot be told.
    pub(super) async fn now() -> Self {
        let text = tokio::fs::read_to_string("/proc/meminfo").await;
        Self::read(&text.unwrap_or_default())
    }

    fn read(text: &str) -> Self {
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
            kibibytes.checked_mul(1 << 10)
        };
        Self {
            available: bytes("MemAvailable:").unwrap_or(0),
            total: bytes("MemTotal:").unwrap_or(0),
        }
    }

    /// Whether less is available than is to stay so.
    pub(super) fn is_short(self, reserve_bytes: Option<u64>) -> bool {
        let reserve = reserve_bytes.unwrap_or(self.total / RESERVE_PART);
        self.available <= reserve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "MemTotal:       8000000 kB\nMemFree:          100000 kB\n\
                        MemAvailable:    900000 kB\n";

    #[test]
    fn a_tenth_of_all_memory_stays_available_unless_the_settings_say_how_much() {
        let memory = Memory::read(TEXT);
        assert_eq!(memory.available, 900_000 << 10);
        assert!(!memory.is_short(None));
        let less = Memory::read(&TEXT.replace("900000", "700000"));
        assert!(less.is_short(None));
        assert!(!less.is_short(Some(600 << 20)));
        assert!(memory.is_short(Some(1 << 30)));
    }

    #[test]
    fn a_machine_that_does_not_tell_is_short_of_memory() {
        assert!(Memory::read("").is_short(None));
        assert!(Memory::read("MemTotal: 8000000 kB\n").is_short(None));
    }
}
