//! A probe's arguments.

use std::ffi::CString;

/// The call was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage;

#[derive(Debug)]
pub(crate) struct Words<'a>(&'a [String]);

impl<'a> Words<'a> {
    pub(crate) fn new(words: &'a [String]) -> Self {
        Self(words)
    }

    pub(crate) fn text(&self, at: usize) -> Result<&'a str, Usage> {
        self.0.get(at).map(String::as_str).ok_or(Usage)
    }

    pub(crate) fn c_text(&self, at: usize) -> Result<CString, Usage> {
        CString::new(self.text(at)?).map_err(|_| Usage)
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, at: usize) -> Result<T, Usage> {
        self.text(at)?.parse().map_err(|_| Usage)
    }

    pub(crate) fn hex(&self, at: usize) -> Result<u64, Usage> {
        u64::from_str_radix(self.text(at)?.trim_start_matches("0x"), 16).map_err(|_| Usage)
    }

    /// One of these words, as the number that stands for it.
    pub(crate) fn one_of(&self, at: usize, known: &[(&str, i32)]) -> Result<i32, Usage> {
        let text = self.text(at)?;
        known
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, number)| *number)
            .ok_or(Usage)
    }
}
