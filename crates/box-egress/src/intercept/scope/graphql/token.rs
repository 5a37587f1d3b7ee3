//! Words and signs of a GraphQL document (GraphQL, October 2021, §2.1). Strict: what is none of
//! them is an error.

/// More tokens than a person or program writes.
pub(crate) const TOKENS_MAX: usize = 100_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Name(String),
    /// Of both kinds, without what an escape stands for: absent when there is one.
    Text(Option<String>),
    Number,
    Spread,
    /// `! $ & ( ) : = @ [ ] { | }`
    Sign(char),
}

/// All tokens; `None` when it is no document.
pub(crate) fn tokens(document: &str) -> Option<Vec<Token>> {
    // Where a comment ends there, not all readers agree.
    if document.replace("\r\n", "").contains('\r') {
        return None;
    }
    let mut rest = document.strip_prefix('\u{feff}').unwrap_or(document);
    let mut all = Vec::new();
    loop {
        rest = skip_ignored(rest);
        let Some(first) = rest.chars().next() else {
            return Some(all);
        };
        if all.len() == TOKENS_MAX {
            return None;
        }
        let (token, behind) = match first {
            '!' | '$' | '&' | '(' | ')' | ':' | '=' | '@' | '[' | ']' | '{' | '|' | '}' => {
                (Token::Sign(first), &rest[1..])
            }
            '.' => (Token::Spread, rest.strip_prefix("...")?),
            '"' => text(rest)?,
            '-' | '0'..='9' => number(rest)?,
            '_' | 'a'..='z' | 'A'..='Z' => {
                let (name, behind) = split_while(rest, is_name);
                (Token::Name(name.to_owned()), behind)
            }
            _ => return None,
        };
        all.push(token);
        rest = behind;
    }
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

/// Spaces, line ends, commas and comments, which end with their line.
fn skip_ignored(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches([' ', '\t', '\r', '\n', ',']);
        let Some(comment) = text.strip_prefix('#') else {
            return text;
        };
        let end = comment.find(['\r', '\n']).unwrap_or(comment.len());
        text = &comment[end..];
    }
}

fn split_while(text: &str, is: fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !is(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// A number decides nothing; only its end matters, which no name may follow (§2.9.1).
fn number(text: &str) -> Option<(Token, &str)> {
    let (number, behind) = split_while(text, |c| {
        c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')
    });
    let is_whole = number.parse::<f64>().is_ok() && !number.ends_with('.');
    let goes_on = behind.starts_with(is_name);
    (is_whole && !goes_on).then_some((Token::Number, behind))
}

fn text(text: &str) -> Option<(Token, &str)> {
    if let Some(inner) = text.strip_prefix("\"\"\"") {
        return block(inner);
    }
    let inner = text.strip_prefix('"')?;
    let (mut is_escaped, mut has_escape) = (false, false);
    for (at, c) in inner.char_indices() {
        match c {
            '\r' | '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => (is_escaped, has_escape) = (true, true),
            '"' => {
                let said = (!has_escape).then(|| inner[..at].to_owned());
                return Some((Token::Text(said), &inner[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

/// A block ends with three quotes. Where readers disagree about which three (one more quote beside
/// them, which graphql-ruby takes into the block, or one behind a backslash) it is taken for no
/// document. Its meaning depends on how its lines are set, so it is never taken for a value.
fn block(inner: &str) -> Option<(Token, &str)> {
    let at = inner.find("\"\"\"")?;
    let (said, behind) = (&inner[..at], &inner[at + 3..]);
    let is_odd = inner.starts_with('"')
        || behind.starts_with('"')
        || said.ends_with('\\')
        || said.contains("\\\"");
    (!is_odd).then_some((Token::Text(None), behind))
}
