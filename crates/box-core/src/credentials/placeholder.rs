//! What a box holds instead of a secret.

use crate::random::Random;

/// 62⁴⁰ > 2²³⁸: far more than the 128 random bits a placeholder must have.
const BODY_CHARS_MIN: usize = 40;
/// box-egress takes 512 bytes; no token known is longer than this.
const CHARS_MAX: usize = 500;
const ALPHABET: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// A placeholder that begins like the secret and is as long, so that a program that looks at its
/// token is content.
pub(super) fn make(prefix: &str, secret_chars: u32, random: &dyn Random) -> String {
    let secret_chars = usize::try_from(secret_chars).unwrap_or(CHARS_MAX);
    let chars = secret_chars
        .min(CHARS_MAX)
        .max(prefix.len() + BODY_CHARS_MIN);
    let mut text = String::with_capacity(chars);
    text.push_str(prefix);
    while text.len() < chars {
        let bytes: [u8; 64] = random.bytes();
        // Bytes from 248 on are left out, so that every letter is equally likely.
        let letters = bytes.iter().filter(|byte| **byte < 248);
        let letters = letters.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        text.extend(letters.take(chars - text.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandom;

    #[test]
    fn a_placeholder_looks_like_the_secret_and_never_comes_twice() {
        let one = make("sk-ant-oat01-", 108, &SystemRandom);
        assert_eq!(one.len(), 108);
        assert!(one.starts_with("sk-ant-oat01-"));
        assert!(one.chars().all(|c| c.is_ascii_graphic()));
        assert_ne!(one, make("sk-ant-oat01-", 108, &SystemRandom));
    }

    #[test]
    fn a_placeholder_of_a_short_secret_is_long_enough_all_the_same() {
        assert_eq!(make("sk-", 19, &SystemRandom).len(), 3 + BODY_CHARS_MIN);
        assert_eq!(make("sk-", 9000, &SystemRandom).len(), CHARS_MAX);
    }
}
