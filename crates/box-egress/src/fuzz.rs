//! Fuzzing without a compiler of its own: seeds of the corpus under `tests/corpus`, changed over
//! and over, put through our parser and through another one. Where ours says yes, both must mean
//! the same. A short run is part of the tests; `cargo xtask fuzz` makes a long one.

mod frames;
mod heads;
mod hellos;
mod names;
mod packets;
mod sockets;

use std::path::Path;
use std::time::{Duration, Instant};

/// Inputs of each target in an ordinary test run.
const ROUNDS: u32 = 3_000;
/// Set by `cargo xtask fuzz`: how long each target goes on, and where chance begins.
const SECONDS: &str = "BOX_FUZZ_SECONDS";
const SEED: &str = "BOX_FUZZ_SEED";
const INPUT_BYTES_MAX: usize = 4096;

/// Numbers that look random and can be had again (xorshift64*).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % bound.max(1)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }

    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// One target: its seeds, and pieces that matter to its grammar.
pub(crate) struct Target {
    pub(crate) seeds: Vec<Vec<u8>>,
    pub(crate) words: &'static [&'static [u8]],
}

/// The files of a folder of the corpus.
pub(crate) fn corpus(folder: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(folder);
    let mut files: Vec<_> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "an empty corpus");
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

impl Target {
    /// Puts changed seeds through `look` until it is time, and says how many.
    pub(crate) fn run(&self, mut look: impl FnMut(&[u8], &mut Chance)) {
        let setting = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let (seconds, seed) = (setting(SECONDS), setting(SEED).unwrap_or(1));
        let (start, mut chance) = (Instant::now(), Chance(seed | 1));
        for seed in &self.seeds {
            look(seed, &mut chance);
        }
        let mut rounds = 0;
        loop {
            let over = match seconds {
                Some(seconds) => start.elapsed() >= Duration::from_secs(seconds),
                None => rounds >= ROUNDS,
            };
            if over {
                break;
            }
            let input = self.changed(&mut chance);
            look(&input, &mut chance);
            rounds += 1;
        }
        println!("{rounds} inputs from seed {seed}");
    }

    fn changed(&self, chance: &mut Chance) -> Vec<u8> {
        let mut input = self.seeds[chance.below(self.seeds.len())].clone();
        for _ in 0..=chance.below(5) {
            self.change(&mut input, chance);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn change(&self, input: &mut Vec<u8>, chance: &mut Chance) {
        let at = chance.below(input.len() + 1);
        let end = (at + chance.below(16)).min(input.len());
        match chance.below(8) {
            0 => input.insert(at, chance.byte()),
            1 => drop(input.drain(at..end)),
            2 if at < input.len() => input[at] = chance.byte(),
            3 if at < input.len() => input[at] ^= 1 << chance.below(8),
            4 => {
                let piece = input[at..end].to_vec();
                let to = chance.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            5 => {
                let other = &self.seeds[chance.below(self.seeds.len())];
                let from = chance.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            6 => input.truncate(at),
            _ if !self.words.is_empty() => {
                let word = chance.one_of(self.words);
                input.splice(at..end, word.iter().copied());
            }
            _ => {}
        }
    }
}

/// A runtime for what waits, one for a whole run.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}
