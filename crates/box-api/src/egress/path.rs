//! Paths of requests as rules judge them: one spelling for what servers may read alike.
//!
//! A rule about a path is worth as much as the spellings it sees through. So a path that two servers
//! could read differently (dot segments, empty segments, backslashes, encodings of encodings,
//! parameters) is refused on a host with rules, and what is left is forwarded in the spelling that
//! was judged. An encoded slash stays one (registries and forges use it), but what it could mean is
//! judged as well.

use std::fmt;

/// Longest pattern.
const GLOB_BYTES_MAX: usize = 1024;

/// Why a path is not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("a path begins with `/`")]
    Relative,
    #[error("a path holds visible ASCII characters and no backslash")]
    Character,
    #[error("a percent sign is followed by two hexadecimal digits")]
    Percent,
    #[error("something encoded twice is read differently by different servers")]
    Twice,
    #[error(
        "`.`, `..`, empty parts and parameters (`;`) are read differently by different servers"
    )]
    Segment,
}

/// A path in the one spelling it is judged and forwarded in: what can stand in a part (`pchar`,
/// RFC 3986 §3.3) plain, all else encoded, hexadecimal digits upper case (§6.2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalPath {
    kept: String,
    /// As it is judged. An encoded `+` is one here; it stays encoded where it is forwarded, as some
    /// servers take a plain one for a space.
    judged: String,
    /// As it is judged, with every encoded slash read as a slash, where that differs.
    read: Option<String>,
}

impl CanonicalPath {
    /// # Errors
    /// [`PathError`] says what could be read in two ways.
    pub fn parse(raw: &str) -> Result<Self, PathError> {
        if !raw.starts_with('/') {
            return Err(PathError::Relative);
        }
        let kept = canonical(raw, is_plain)?;
        check_segments(&kept)?;
        let judged = kept.replace("%2B", "+");
        let read = judged.contains("%2F").then(|| judged.replace("%2F", "/"));
        if let Some(read) = &read {
            check_segments(read)?;
        }
        Ok(Self { kept, judged, read })
    }

    /// As it is forwarded.
    pub fn as_str(&self) -> &str {
        &self.kept
    }

    fn readings(&self) -> impl Iterator<Item = &str> {
        [Some(self.judged.as_str()), self.read.as_deref()]
            .into_iter()
            .flatten()
    }
}

/// One spelling; `is_plain` says what is written out that came encoded.
fn canonical(raw: &str, is_plain: impl Fn(u8) -> bool) -> Result<String, PathError> {
    let mut kept = String::with_capacity(raw.len());
    let mut bytes = raw.as_bytes();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        match first {
            b'%' => {
                let [high, low, rest @ ..] = rest else {
                    return Err(PathError::Percent);
                };
                let octet = octet(*high, *low).ok_or(PathError::Percent)?;
                bytes = rest;
                match octet {
                    0..0x20 | 0x7f | b'\\' => return Err(PathError::Character),
                    b';' => return Err(PathError::Segment),
                    octet if is_plain(octet) => kept.push(char::from(octet)),
                    octet => kept.extend(encoded(octet)),
                }
            }
            b';' => return Err(PathError::Segment),
            b'\\' => return Err(PathError::Character),
            b'/' | b'+' => kept.push(char::from(*first)),
            octet if is_pchar(*octet) => kept.push(char::from(*octet)),
            b'!'..=b'~' => kept.extend(encoded(*first)),
            _ => return Err(PathError::Character),
        }
    }
    if is_encoded_again(&kept) {
        return Err(PathError::Twice);
    }
    Ok(kept)
}

/// Whether decoding once leaves something encoded. Asked of the whole, as the digits behind a percent
/// sign may have been encoded themselves.
fn is_encoded_again(kept: &str) -> bool {
    kept.match_indices("%25").any(|(at, percent)| {
        let rest = kept.as_bytes().get(at + percent.len()..);
        matches!(rest, Some([high, low, ..]) if octet(*high, *low).is_some())
    })
}

fn octet(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn encoded(octet: u8) -> [char; 3] {
    let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value & 15)]);
    ['%', digit(octet >> 4), digit(octet)]
}

/// What can stand in a part as it is (RFC 3986 §3.3), without `;`, which is refused.
fn is_pchar(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&octet)
}

/// What is written out in a request.
fn is_plain(octet: u8) -> bool {
    is_pchar(octet) && octet != b'+'
}

/// What is written out in a pattern: there an encoded star is the character, and a plain one is not.
fn is_plain_in_pattern(octet: u8) -> bool {
    is_pchar(octet) && octet != b'*'
}

fn check_segments(path: &str) -> Result<(), PathError> {
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if matches!(segment, "." | "..") || (segment.is_empty() && !is_last) {
            return Err(PathError::Segment);
        }
    }
    Ok(())
}

/// Why a text is not a pattern of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    #[error("a pattern has at most {GLOB_BYTES_MAX} characters")]
    TooLong,
    #[error("a pattern has no query; what follows a `?` is never judged")]
    Query,
    #[error(transparent)]
    Path(#[from] PathError),
}

/// A pattern of paths. `*` stands for anything within one part; at the end of the pattern, and as
/// `**` anywhere, for anything at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathGlob(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Octet(u8),
    WithinPart,
    Anything,
}

impl PathGlob {
    /// # Errors
    /// [`GlobError`]
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        if text.len() > GLOB_BYTES_MAX {
            return Err(GlobError::TooLong);
        }
        if text.contains(['?', '#']) {
            return Err(GlobError::Query);
        }
        CanonicalPath::parse(text)?;
        // Kept in the spelling that paths are judged in.
        Ok(Self(canonical(text, is_plain_in_pattern)?))
    }

    /// Whether every reading of the path fits. For rules that let something through.
    pub fn matches_surely(&self, path: &CanonicalPath) -> bool {
        let tokens = self.tokens();
        path.readings().all(|path| fits(&tokens, path.bytes()))
    }

    /// Whether any reading fits, in any case of its letters, with a slash at its end or without.
    /// For rules that refuse something.
    pub fn matches_maybe(&self, path: &CanonicalPath) -> bool {
        let mut tokens = self.tokens();
        for token in &mut tokens {
            if let Token::Octet(octet) = token {
                octet.make_ascii_lowercase();
            }
        }
        path.readings().any(|path| {
            let lower = |text: &str| fits(&tokens, text.bytes().map(|b| b.to_ascii_lowercase()));
            let without = path.strip_suffix('/').filter(|path| !path.is_empty());
            lower(path) || without.is_some_and(lower)
        })
    }

    fn tokens(&self) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(self.0.len());
        let mut bytes = self.0.as_bytes();
        while let [first, rest @ ..] = bytes {
            bytes = rest;
            match (first, rest) {
                (b'*', [b'*', after @ ..]) => {
                    bytes = after;
                    tokens.push(Token::Anything);
                }
                (b'*', []) => tokens.push(Token::Anything),
                (b'*', _) => tokens.push(Token::WithinPart),
                (b'%', [b'2', b'A', after @ ..]) => {
                    bytes = after;
                    tokens.push(Token::Octet(b'*'));
                }
                (octet, _) => tokens.push(Token::Octet(*octet)),
            }
        }
        tokens
    }
}

/// Whether a text fits, by keeping every place of the pattern it could stand at: never slower than
/// one step for each character and place.
fn fits(tokens: &[Token], text: impl Iterator<Item = u8>) -> bool {
    let mut at = vec![false; tokens.len() + 1];
    at[0] = true;
    pass_stars(tokens, &mut at);
    for octet in text {
        let mut next = vec![false; at.len()];
        for (place, token) in tokens.iter().enumerate().filter(|(place, _)| at[*place]) {
            match token {
                Token::Octet(own) if *own == octet => next[place + 1] = true,
                Token::WithinPart if octet != b'/' => next[place] = true,
                Token::Anything => next[place] = true,
                Token::Octet(_) | Token::WithinPart => {}
            }
        }
        pass_stars(tokens, &mut next);
        at = next;
    }
    at.last().copied().unwrap_or(false)
}

/// A star may stand for nothing.
fn pass_stars(tokens: &[Token], at: &mut [bool]) {
    for (place, token) in tokens.iter().enumerate() {
        if at[place] && matches!(token, Token::WithinPart | Token::Anything) {
            at[place + 1] = true;
        }
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(raw: &str) -> CanonicalPath {
        CanonicalPath::parse(raw).unwrap()
    }

    #[test]
    fn path_has_one_spelling() {
        for (raw, kept) in [
            ("/", "/"),
            ("/repos/a/", "/repos/a/"),
            ("/%72epos/%7euser", "/repos/~user"),
            ("/a%20b/%c3%a9", "/a%20b/%C3%A9"),
            ("/@scope%2fname", "/@scope%2Fname"),
            ("/100%25", "/100%25"),
            ("/g%3Agenerate%40%28%2a%29", "/g:generate@(*)"),
            ("/a%2bb+c", "/a%2Bb+c"),
            ("/{a}|%7bb%7d", "/%7Ba%7D%7C%7Bb%7D"),
        ] {
            assert_eq!(path(raw).as_str(), kept, "{raw}");
        }
    }

    #[test]
    fn path_that_can_be_read_in_two_ways_is_none() {
        for raw in [
            "",
            "repos",
            "*",
            "//repos",
            "/repos//a",
            "/repos/./a",
            "/repos/../a",
            "/repos/..",
            "/repos/%2e%2e/a",
            "/repos/.%2E/a",
            "/repos%2f..%2fa",
            "/a%2f%2fb",
            "/repos/a%5c..",
            "/repos/a\\b",
            "/a%252fb",
            "/a%25%32fb",
            "/a%00",
            "/a%0d%0a",
            "/a%",
            "/a%2",
            "/a%zz",
            "/repos;x=y/a",
            "/repos/..;/a",
            "/a%3bb",
            "/a b",
            "/é",
        ] {
            let parsed = CanonicalPath::parse(raw);
            assert!(parsed.is_err(), "{raw}: {parsed:?}");
        }
    }

    #[test]
    fn stars_stand_for_a_part_or_for_the_rest() {
        let cases = [
            ("/repos/*", "/repos/a/b/c", true),
            ("/repos/*", "/repos/", true),
            ("/repos/*", "/repos", false),
            ("/repos/*/issues", "/repos/a/issues", true),
            ("/repos/*/issues", "/repos/a/b/issues", false),
            ("/repos/**/issues", "/repos/a/b/issues", true),
            ("/repos/a-*/x", "/repos/a-/x", true),
            ("/repos/a", "/repos/A", false),
            ("/*", "/anything/at/all", true),
            ("/a%20b", "/a%20b", true),
            ("/projects/*/x", "/projects/group%2Fname/x", false),
            ("/projects/**/x", "/projects/group%2Fname/x", true),
        ];
        for (glob, raw, expected) in cases {
            let glob = PathGlob::parse(glob).unwrap();
            assert_eq!(glob.matches_surely(&path(raw)), expected, "{glob} {raw}");
        }
    }

    #[test]
    fn what_is_refused_is_refused_in_every_reading() {
        let glob = PathGlob::parse("/repos/corp/secret").unwrap();
        for raw in [
            "/repos/corp/secret",
            "/repos/corp/secret/",
            "/REPOS/Corp/seCret",
            "/repos/corp%2fsecret",
            "/repos%2Fcorp/secret",
        ] {
            assert!(glob.matches_maybe(&path(raw)), "{raw}");
        }
        for raw in ["/repos/corp/secret2", "/repos/corp", "/x/repos/corp/secret"] {
            assert!(!glob.matches_maybe(&path(raw)), "{raw}");
        }
    }

    #[test]
    fn what_is_refused_is_refused_however_it_is_encoded() {
        let cases = [
            (
                "/v1beta/models/*:generateContent",
                "/v1beta/models/g%3AgenerateContent",
            ),
            ("/v1/a%3Ab", "/v1/a:b"),
            ("/@scope/*", "/%40scope/a"),
            ("/f(1)", "/f%281%29"),
            ("/f{1}", "/f%7B1%7D"),
            ("/f%7b1%7d", "/f{1}"),
            ("/a+b", "/a%2Bb"),
            ("/a%2Bb", "/a+b"),
            ("/x+y/z", "/x%2By%2Fz"),
            ("/a%2Ab", "/a*b"),
            ("/a%2ab", "/a%2Ab"),
            ("/$&',=!", "/%24%26%27%2C%3D%21"),
        ];
        for (glob, raw) in cases {
            let glob = PathGlob::parse(glob).unwrap();
            assert!(glob.matches_maybe(&path(raw)), "{glob} {raw}");
            // What goes on is read as what was judged.
            assert_eq!(path(path(raw).as_str()), path(raw));
        }
    }

    #[test]
    fn encoded_star_of_a_pattern_is_the_character_alone() {
        let glob = PathGlob::parse("/a%2Ab/%2a").unwrap();
        assert!(glob.matches_surely(&path("/a*b/*")));
        assert!(!glob.matches_surely(&path("/axb/*")) && !glob.matches_maybe(&path("/a*b/x")));
        assert_eq!(PathGlob::parse(&glob.to_string()).unwrap(), glob);
    }

    #[test]
    fn hostile_path_costs_no_more_than_its_length() {
        let glob = PathGlob::parse(&format!("/{}", "*a".repeat(200))).unwrap();
        let long = format!("/{}b", "a".repeat(8000));
        assert!(!glob.matches_surely(&path(&long)));
    }
}
