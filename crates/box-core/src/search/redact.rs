//! Leaves out of a text what looks like a secret: tokens of every kind of account there is, and of
//! some more, whoever's they are; keys; passwords in addresses; long random words.
//!
//! Placeholders look like the secrets they stand for, so they go too. Better a word too many than a
//! secret in a table.

use crate::credentials::kinds;
use std::sync::LazyLock;

/// What takes its place.
const MARK: &str = "[redacted]";
/// Beginnings of tokens that no kind of account here has.
const OTHERS: [&str; 21] = [
    "AKIA", "ASIA", "xoxb-", "xoxp-", "xoxa-", "xapp-", "hf_", "gsk_", "xai-", "pypi-", "dop_v1_",
    "ghr_", "glptt-", "glrt-", "sk_live_", "rk_live_", "whsec_", "shpat_", "SG.", "ya29.", "eyJ",
];
/// What follows such a beginning at least, unless the text may still grow.
const REST_CHARS_MIN: usize = 8;
/// A word of so many letters and digits is taken for random if it changes between them often enough.
const RANDOM_CHARS_MIN: usize = 32;
/// Changes between lower case, upper case and digits, in hundredths of the characters: of random
/// ones 62 are to be expected.
const RANDOM_CHANGES_MIN: usize = 30;
/// Capitals of a random word that has no digit, in hundredths; 50 are to be expected.
const CAPITALS_MIN: usize = 30;
/// Words whose next word is a secret, in lower case.
const BEFORE: [&str; 2] = ["bearer", "basic"];
const AFTER_CHARS_MIN: usize = 16;

/// Longest first: the longer one says more.
static PREFIXES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let shapes = kinds::all().flat_map(|kind| &kind.shapes);
    let known = shapes.map(|shape| shape.prefix.as_str()).chain(OTHERS);
    let mut all: Vec<String> = known
        .filter(|prefix| prefix.len() >= 3)
        .map(str::to_owned)
        .collect();
    all.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
    all.dedup();
    all
});

/// The text without what looks like a secret.
pub(super) fn redacted(text: String) -> String {
    let text = without_keys(text);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut before = String::new();
    while let Some(first) = rest.chars().next() {
        let end = rest
            .find(|c| is_word(c) != is_word(first))
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        if is_word(first) {
            let place = if after.is_empty() {
                Place::Last
            } else {
                Place::Within
            };
            if BEFORE.contains(&before.as_str()) && piece.len() >= AFTER_CHARS_MIN && is_odd(piece)
            {
                clean.push_str(MARK);
            } else {
                push_word(&mut clean, piece, place);
            }
            before = piece.to_ascii_lowercase();
        } else {
            clean.push_str(piece);
        }
        rest = after;
    }
    without_passwords(clean)
}

/// Characters a token can have.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '=' | '~' | '%')
}

/// Where a word stands in the text that is there so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Within,
    /// More of it may follow.
    Last,
}

/// A word, of which what looks like a token is left out.
fn push_word(clean: &mut String, word: &str, place: Place) {
    // A token can stand behind `name=` or in a path; what is before it is no secret.
    if let Some(at) = token_at(word, place) {
        clean.push_str(&word[..at]);
        return clean.push_str(MARK);
    }
    let parts = || word.split_inclusive(['/', '=', '.']);
    // Base64 has some of these in it.
    if !parts().any(is_random) && is_random(word) {
        return clean.push_str(MARK);
    }
    for part in parts() {
        clean.push_str(if is_random(part) { MARK } else { part });
    }
}

/// Where in a word a token of a known beginning begins.
fn token_at(word: &str, place: Place) -> Option<usize> {
    // A word may be nothing but beginnings: each is looked at for as long as the others.
    let last_odd = word
        .bytes()
        .rposition(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let fits = |prefix: &String, at: usize| {
        let start = at + prefix.len();
        let rest = &word[start..];
        let apart = word[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_ascii_alphanumeric());
        let whole = rest.len() >= REST_CHARS_MIN && last_odd.is_some_and(|odd| odd > start);
        apart && (whole || (place == Place::Last && !rest.is_empty()))
    };
    let found = PREFIXES.iter().filter_map(|prefix| {
        let mut places = word.match_indices(prefix.as_str()).map(|(at, _)| at);
        places.find(|at| fits(prefix, *at))
    });
    found.min()
}

/// Words of a language are of letters, and only the first is a capital.
fn is_odd(word: &str) -> bool {
    let mut rest = word.chars().skip(1);
    rest.any(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
}

fn is_random(part: &str) -> bool {
    let class = |c: char| match c {
        'a'..='z' => Some(0),
        'A'..='Z' => Some(1),
        '0'..='9' => Some(2),
        _ => None,
    };
    let classes: Vec<usize> = part.chars().filter_map(class).collect();
    if classes.len() < RANDOM_CHARS_MIN {
        return false;
    }
    let changes = classes.windows(2).filter(|two| two[0] != two[1]).count();
    let of = |wanted: usize| classes.iter().filter(|class| **class == wanted).count();
    let (lower, upper, digits) = (of(0), of(1), of(2));
    // Names put together of words have few capitals, and ids in hexadecimal none.
    let mixed = lower > 0 && upper > 0;
    let capitals = upper * 100 >= classes.len() * CAPITALS_MIN;
    mixed && (digits > 0 || capitals) && changes * 100 >= classes.len() * RANDOM_CHANGES_MIN
}

/// Private keys, whole.
fn without_keys(text: String) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    if !text.contains("PRIVATE KEY") {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(BEGIN) {
        let (before, key) = rest.split_at(at);
        let line = key.lines().next().unwrap_or_default();
        clean.push_str(before);
        if !line.contains("PRIVATE KEY") {
            clean.push_str(BEGIN);
            rest = &key[BEGIN.len()..];
            continue;
        }
        clean.push_str(MARK);
        // One that is cut off goes to its end.
        rest = match key.find(END) {
            Some(end) => key[end..].split_once('\n').map_or("", |(_, rest)| rest),
            None => "",
        };
    }
    clean.push_str(rest);
    clean
}

/// `https://user:password@host`
fn without_passwords(text: String) -> String {
    if !text.contains("://") || !text.contains('@') {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let authority = after
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''))
            .unwrap_or(after.len());
        let user = after[..authority].rfind('@').unwrap_or(0);
        if after[..user].contains(':') {
            clean.push_str(MARK);
            rest = &after[user..];
        } else {
            rest = after;
        }
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        redacted(text.to_owned())
    }

    /// Random to look at, and the same in every run.
    fn letters(seed: u64, count: usize) -> String {
        const ALL: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            // Marsaglia, *Xorshift RNGs*.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap() % ALL.len()
        };
        for _ in 0..20 {
            next();
        }
        (0..count).map(|_| char::from(ALL[next()])).collect()
    }

    /// No time is measured: what takes the square of this would take minutes.
    #[test]
    fn a_word_of_nothing_but_beginnings_is_read_once() {
        let beginnings = "hf_".repeat(100_000);
        assert_eq!(of(&format!("{beginnings} x")), format!("{beginnings} x"));
        let clean = of(&format!("{beginnings}{} x", letters(1, 40)));
        assert!(clean.ends_with("[redacted] x"), "{}", clean.len());
    }

    #[test]
    fn tokens_of_every_kind_are_left_out_wherever_they_stand() {
        for (seed, prefix) in (1..).zip(PREFIXES.iter()) {
            let secret = letters(seed, 40);
            let token = format!("{prefix}{secret}");
            let around = [
                token.clone(),
                format!("the token is {token}."),
                format!("export TOKEN={token}; make"),
                format!("{{\"token\":\"{token}\"}}"),
                format!("https://x-access-token:{token}@github.com/a/b"),
                format!("Authorization: Bearer {token}\n"),
            ];
            for text in around {
                let clean = of(&text);
                let left = [&secret[..12], &secret[28..]];
                assert!(
                    !left.iter().any(|piece| clean.contains(piece)),
                    "{prefix}: {text:?} became {clean:?}"
                );
                assert!(clean.contains(MARK), "{clean}");
            }
        }
    }

    #[test]
    fn random_words_without_a_known_beginning_are_left_out() {
        for seed in 1..500 {
            let secret = letters(seed, 40);
            let clean = of(&format!("PASS={secret} and more"));
            assert!(!clean.contains(&secret[..12]), "{clean}");
            assert!(clean.ends_with(" and more"), "{clean}");
        }
    }

    #[test]
    fn a_token_that_may_still_grow_is_left_out_from_its_first_letter() {
        assert_eq!(of("it is ghp_a"), "it is [redacted]");
        assert_eq!(of("it is ghp_a of course"), "it is ghp_a of course");
    }

    #[test]
    fn keys_and_passwords_in_addresses_are_left_out() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";
        assert_eq!(of(&format!("a\n{key}b")), "a\n[redacted]b");
        assert_eq!(
            of("x -----BEGIN RSA PRIVATE KEY-----\nMIIE"),
            "x [redacted]"
        );
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIE\n";
        assert_eq!(of(certificate), certificate);
        assert_eq!(
            of("postgres://me:hunter2@db.example:5432/x and https://example.org/@me"),
            "postgres://[redacted]@db.example:5432/x and https://example.org/@me"
        );
        assert_eq!(
            of("authorization: bearer abcdefghijklmnop4rst"),
            "authorization: bearer [redacted]"
        );
    }

    #[test]
    fn what_people_look_for_stays() {
        let plain = "commit 25e4ec4eae9a5b38746c1d4cab24fa1ac7f00112233 in \
            crates/box-core/src/lifecycle/snapshot.rs /home/me/Projects/app2/src/Main2.java: a_box_comes_back_to_its_snapshot_and_the_restore \
            getElementsByClassNameAndThenSomeMoreWords https://example.org/a?b=c me@example.org \
            bearer of news; sk-learn is a library, AKIA is a company";
        assert_eq!(of(plain), plain);
    }
}
