//! A secret on its way from a person to box-egress.

use super::kinds::{Kind, Shape};
use zeroize::Zeroizing;

/// Longer than any token known; box-egress takes 64 KiB.
const SECRET_BYTES_MAX: usize = 8 << 10;
/// Characters behind the prefix: fewer cannot be a token, and would be guessable.
const BODY_CHARS_MIN: usize = 16;

/// A secret. It cannot be shown, and is wiped when it is let go.
pub struct Secret(Zeroizing<Vec<u8>>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

/// Why a text cannot be the secret. Never holds any of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("it is empty")]
    Empty,
    #[error("it has more than {SECRET_BYTES_MAX} bytes")]
    TooLong,
    #[error("it has a line break, a zero byte, a space or a character outside ASCII inside")]
    Characters,
    #[error("it is too short to be one")]
    TooShort,
    #[error("it does not begin as one does: {}", .expected.join(" or "))]
    Shape { expected: Vec<String> },
}

impl Secret {
    /// Takes a secret as it was typed or piped in; one line break at its end is not part of it.
    ///
    /// # Errors
    /// [`SecretError`]; the text is wiped either way.
    pub fn parse(text: String) -> Result<Self, SecretError> {
        let mut bytes = Zeroizing::new(text.into_bytes());
        for end in [b'\n', b'\r'] {
            if bytes.last() == Some(&end) {
                bytes.pop();
            }
        }
        if bytes.is_empty() {
            return Err(SecretError::Empty);
        }
        if bytes.len() > SECRET_BYTES_MAX {
            return Err(SecretError::TooLong);
        }
        // It becomes part of a header: visible ASCII only (RFC 9110 §5.5).
        if !bytes.iter().all(u8::is_ascii_graphic) {
            return Err(SecretError::Characters);
        }
        Ok(Self(bytes))
    }

    /// Which form of its kind it has.
    pub(super) fn shape<'k>(&self, kind: &'k Kind) -> Result<&'k Shape, SecretError> {
        let shapes = kind.shapes.iter();
        // The longest prefix that fits: one may be the beginning of another.
        let found = shapes
            .clone()
            .filter(|shape| self.0.starts_with(shape.prefix.as_bytes()))
            .max_by_key(|shape| shape.prefix.len());
        let Some(shape) = found else {
            let expected = shapes.map(|shape| format!("`{}…`", shape.prefix)).collect();
            return Err(SecretError::Shape { expected });
        };
        if self.0.len() < shape.prefix.len() + BODY_CHARS_MIN {
            return Err(SecretError::TooShort);
        }
        Ok(shape)
    }

    pub(super) fn chars(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn into_bytes(self) -> Zeroizing<Vec<u8>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> SecretError {
        Secret::parse(text.to_owned()).err().unwrap()
    }

    #[test]
    fn only_what_fits_into_a_header_is_a_secret() {
        assert!(Secret::parse("sk-ant-oat01-abc\n".to_owned()).is_ok());
        assert_eq!(Secret::parse("abc\r\n".to_owned()).unwrap().chars(), 3);
        assert_eq!(refused("\n"), SecretError::Empty);
        for bad in ["a\nb", "a\rb", "a\0b", "a b", "a\n\n", "ä"] {
            assert_eq!(refused(bad), SecretError::Characters, "{bad:?}");
        }
        assert_eq!(
            refused(&"x".repeat(SECRET_BYTES_MAX + 1)),
            SecretError::TooLong
        );
    }

    #[test]
    fn a_secret_and_its_refusal_show_nothing_of_it() {
        let secret = Secret::parse("sk-ant-oat01-TELLTALE".to_owned()).unwrap();
        assert!(!format!("{secret:?}").contains("TELLTALE"));
        let refusal = refused("TELLTALE\u{7f}");
        assert!(!format!("{refusal} {refusal:?}").contains("TELLTALE"));
    }
}
