//! Bytes from an agent to lines, with a bound on how long a line may get.

use super::LINE_IN_BYTES_MAX;

/// The agent sent a line longer than [`LINE_IN_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent sent a line longer than {} MiB", LINE_IN_BYTES_MAX >> 20)]
pub struct LineTooLong;

/// Puts lines together from pieces. After [`LineTooLong`] it takes nothing more.
#[derive(Debug, Default)]
pub struct LineReader {
    partial: Vec<u8>,
    overflown: bool,
}

impl LineReader {
    /// A reader that has already been given `partial`, the beginning of a line.
    pub fn resumed(partial: Vec<u8>) -> Self {
        Self {
            partial,
            overflown: false,
        }
    }

    /// Bytes taken that are not part of a whole line yet.
    pub fn pending_bytes(&self) -> usize {
        self.partial.len()
    }

    /// The beginning of the line that is not whole yet.
    pub fn pending(&self) -> &[u8] {
        &self.partial
    }

    /// Takes one line out of `bytes`, which is left at what follows it. `None`: all of `bytes` is
    /// used up and the line not whole. The line comes without its end (`\n` or `\r\n`).
    ///
    /// # Errors
    /// [`LineTooLong`], now and from now on.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, LineTooLong> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (head, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.overflown || self.partial.len() + head.len() > LINE_IN_BYTES_MAX {
            self.overflown = true;
            self.partial = Vec::new();
            return Err(LineTooLong);
        }
        self.partial.extend_from_slice(head);
        *bytes = rest.get(1..).unwrap_or_default();
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.partial);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(reader: &mut LineReader, mut bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = reader.next(&mut bytes).unwrap() {
            lines.push(String::from_utf8(line).unwrap());
        }
        lines
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = b"{\"a\":1}\r\n\nsecond\nrest";
        for at in 0..text.len() {
            let mut reader = LineReader::default();
            let mut got = lines(&mut reader, &text[..at]);
            got.extend(lines(&mut reader, &text[at..]));
            assert_eq!(got, ["{\"a\":1}", "", "second"], "cut at {at}");
            assert_eq!(reader.pending(), b"rest");
        }
    }

    #[test]
    fn a_line_of_the_longest_length_passes_and_one_byte_more_does_not() {
        let mut reader = LineReader::default();
        let longest = vec![b'x'; LINE_IN_BYTES_MAX];
        assert_eq!(reader.next(&mut longest.as_slice()), Ok(None));
        let line = reader.next(&mut b"\n".as_slice()).unwrap().unwrap();
        assert_eq!(line.len(), LINE_IN_BYTES_MAX);

        assert_eq!(reader.next(&mut longest.as_slice()), Ok(None));
        assert_eq!(reader.next(&mut b"x".as_slice()), Err(LineTooLong));
        assert_eq!(reader.next(&mut b"\n{}\n".as_slice()), Err(LineTooLong));
        assert_eq!(reader.pending_bytes(), 0, "the memory is given back");
    }

    #[test]
    fn the_error_says_the_bound() {
        assert_eq!(
            LineTooLong.to_string(),
            "the agent sent a line longer than 32 MiB"
        );
    }
}
