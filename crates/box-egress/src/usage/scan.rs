//! Looks for values in JSON that comes in pieces. It checks nothing and keeps nothing but the
//! names that lead to where it is, and a value as long as a number or a name.

/// Names that lead to a value; what lies deeper is passed over.
const DEPTH_MAX: usize = 4;
/// Longer names and texts are none that are looked for.
const TEXT_BYTES_MAX: usize = 128;

/// A value that was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Text(&'a str),
    /// Whole and not negative.
    Number(u64),
}

/// What is told of every value: the names that lead to it, and itself.
pub(super) type Found<'f> = dyn FnMut(&[&str], Value<'_>) + 'f;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Between,
    Text,
    /// Behind a backslash.
    Escape,
    Number,
}

/// Where a scanner is in a text.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    at: At,
    /// Objects and lists that are open.
    depth: usize,
    /// The name each open object is at, as deep as they are looked at; a list has none.
    names: Vec<Option<String>>,
    /// Whether the next text is a name.
    wants_name: bool,
    /// The text or number that is being read; nothing once it is too long.
    piece: Option<Vec<u8>>,
}

impl Scanner {
    pub(super) fn feed(&mut self, bytes: &[u8], found: &mut Found<'_>) {
        for byte in bytes {
            self.step(*byte, found);
        }
    }

    fn step(&mut self, byte: u8, found: &mut Found<'_>) {
        match (self.at, byte) {
            (At::Text, b'"') => self.text_ends(found),
            (At::Text, b'\\') => {
                // What is looked for has no escapes in it.
                self.piece = None;
                self.at = At::Escape;
            }
            (At::Text, byte) => self.keep(byte),
            (At::Escape, _) => self.at = At::Text,
            (At::Number, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') => self.keep(byte),
            (At::Number, byte) => {
                self.number_ends(found);
                self.between(byte);
            }
            (At::Between, byte) => self.between(byte),
        }
    }

    fn between(&mut self, byte: u8) {
        self.at = At::Between;
        match byte {
            b'"' => {
                self.at = At::Text;
                self.piece = Some(Vec::new());
            }
            b'0'..=b'9' | b'-' => {
                self.at = At::Number;
                self.piece = Some(vec![byte]);
            }
            b'{' => self.open(Some(String::new())),
            b'[' => self.open(None),
            b'}' | b']' => self.close(),
            b',' => self.wants_name = self.is_in_object(),
            b':' => self.wants_name = false,
            _ => {}
        }
    }

    fn open(&mut self, name: Option<String>) {
        self.wants_name = name.is_some();
        self.depth = self.depth.saturating_add(1);
        if self.depth <= DEPTH_MAX {
            self.names.truncate(self.depth - 1);
            self.names.push(name);
        }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.names.truncate(self.depth);
        self.wants_name = false;
    }

    fn is_in_object(&self) -> bool {
        self.depth <= DEPTH_MAX && self.names.last().is_some_and(Option::is_some)
    }

    fn keep(&mut self, byte: u8) {
        let kept = self.piece.as_mut();
        if let Some(piece) = kept.filter(|piece| piece.len() < TEXT_BYTES_MAX) {
            piece.push(byte);
        } else {
            self.piece = None;
        }
    }

    fn text_ends(&mut self, found: &mut Found<'_>) {
        self.at = At::Between;
        let piece = self.piece.take();
        if self.depth > DEPTH_MAX {
            return;
        }
        let text = piece.and_then(|piece| String::from_utf8(piece).ok());
        if self.wants_name {
            self.wants_name = false;
            if let Some(Some(name)) = self.names.last_mut() {
                // One that cannot be kept is none that is looked for.
                *name = text.unwrap_or_default();
            }
            return;
        }
        if let (Some(text), Some(path)) = (text, self.path()) {
            found(&path, Value::Text(&text));
        }
    }

    fn number_ends(&mut self, found: &mut Found<'_>) {
        let piece = self.piece.take();
        let number = piece.and_then(|piece| String::from_utf8(piece).ok()?.parse().ok());
        if self.depth > DEPTH_MAX {
            return;
        }
        if let (Some(number), Some(path)) = (number, self.path()) {
            found(&path, Value::Number(number));
        }
    }

    /// The names that lead here; none inside of a list, but for one around everything, which is how
    /// Gemini streams without events.
    fn path(&self) -> Option<Vec<&str>> {
        let names = match self.names.split_first() {
            Some((None, rest)) => rest,
            Some((Some(_), _)) | None => &self.names[..],
        };
        let path = names.iter().map(Option::as_deref);
        path.collect::<Option<Vec<&str>>>()
            .filter(|path| !path.is_empty())
    }
}

/// Looks for values in the `data:` lines of a stream of events.
#[derive(Debug, Default)]
pub(super) struct Lines {
    scanner: Scanner,
    /// How much of `data:` the line began with.
    begun: usize,
    line: Line,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    #[default]
    Begins,
    Data,
    Other,
}

const DATA: &[u8] = b"data:";

impl Lines {
    pub(super) fn feed(&mut self, bytes: &[u8], found: &mut Found<'_>) {
        for byte in bytes {
            self.step(*byte, found);
        }
    }

    fn step(&mut self, byte: u8, found: &mut Found<'_>) {
        if byte == b'\n' || byte == b'\r' {
            // A number at the end of a line is over with it.
            self.scanner.feed(b"\n", found);
            *self = Self::default();
            return;
        }
        match self.line {
            Line::Begins if byte == DATA[self.begun] => {
                self.begun += 1;
                if self.begun == DATA.len() {
                    self.line = Line::Data;
                }
            }
            Line::Begins => self.line = Line::Other,
            Line::Data => self.scanner.feed(&[byte], found),
            Line::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, cut: usize) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut scanner = Scanner::default();
        let mut take = |path: &[&str], value: Value<'_>| {
            let value = match value {
                Value::Text(text) => text.to_owned(),
                Value::Number(number) => number.to_string(),
            };
            all.push((path.join("."), value));
        };
        scanner.feed(&text.as_bytes()[..cut], &mut take);
        scanner.feed(&text.as_bytes()[cut..], &mut take);
        all
    }

    #[test]
    fn values_are_found_by_their_names_however_they_are_cut() {
        let text = r#"{"a":1,"b":{"c":"x","l":[{"d":7},8],"e":{"f":2}},"g\"h":3,"i":null,"j":4.5, "k" : 5 }"#;
        let whole = found(text, 0);
        let expected = [
            ("a", "1"),
            ("b.c", "x"),
            ("b.e.f", "2"),
            ("", "3"),
            ("k", "5"),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(path, value)| ((*path).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(whole, expected);
        for cut in 0..text.len() {
            assert_eq!(found(text, cut), whole, "cut at {cut}");
        }
    }

    #[test]
    fn a_list_around_everything_is_looked_into() {
        assert_eq!(
            found(r#"[{"a":1},{"a":2}]"#, 3),
            [
                ("a".to_owned(), "1".to_owned()),
                ("a".to_owned(), "2".to_owned())
            ]
        );
    }

    #[test]
    fn nothing_makes_it_keep_much_or_stumble() {
        let deep = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
        assert_eq!(found(&deep, 17), []);
        let long = format!("{{\"a\":\"{}\",\"b\":2}}", "x".repeat(1 << 20));
        assert_eq!(found(&long, 100), [("b".to_owned(), "2".to_owned())]);
        let mut scanner = Scanner::default();
        let mut noise: u32 = 1;
        let mut take = |_: &[&str], _: Value<'_>| {};
        for _ in 0..200_000 {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let bytes = b"{}[]\":,\\0a-.";
            scanner.feed(&[bytes[(noise >> 16) as usize % bytes.len()]], &mut take);
            assert!(scanner.names.len() <= DEPTH_MAX);
            assert!(
                scanner
                    .piece
                    .as_ref()
                    .is_none_or(|piece| piece.len() <= TEXT_BYTES_MAX)
            );
        }
    }

    #[test]
    fn only_data_lines_of_a_stream_are_read_and_each_for_itself() {
        let text =
            ": {\"a\":1}\r\nevent: {\"a\":2}\ndata: {\"a\":3}\n\ndata:{\"a\":{\ndata: {\"a\":4}\n";
        let mut all = Vec::new();
        let mut lines = Lines::default();
        let mut add = |path: &[&str], value: Value| {
            if let (["a"], Value::Number(number)) = (path, value) {
                all.push(number);
            }
        };
        for byte in text.bytes() {
            lines.feed(&[byte], &mut add);
        }
        assert_eq!(all, [3, 4]);
    }
}
