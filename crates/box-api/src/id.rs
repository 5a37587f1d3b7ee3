//! Names and ids. A value of these types is valid; the only way in is `parse`.

use serde::{Deserialize, Serialize};
use std::fmt;

const ID_CHARS: usize = 16;
const ID_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const NAME_CHARS_MAX: usize = 63;
const TITLE_CHARS_MAX: usize = 100;

/// Why a name or an id was refused. The text is what a person reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a box name starts with a letter a-z, then letters, digits and `-`, 63 at most")]
    Name,
    #[error("`all` stands for every box and cannot name one")]
    Reserved,
    #[error("a title has 1 to 100 characters, none of them a control character")]
    Title,
    #[error("an id has 16 characters of a-z and 2-7")]
    Id,
    #[error("a label starts with a letter a-z or a digit, then also `-`, `_` and `.`, 63 at most")]
    Label,
    #[error("an owner is written `uid:<number>`")]
    Owner,
}

/// Makes a type that is a string on the wire and checked on the way in.
macro_rules! text_on_the_wire {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }
        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }
        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }
    };
}

/// An id of 16 characters `a–z2–7` (80 bits), made by the host and never reused.
macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
        #[cfg_attr(test, schemars(extend("pattern" = "^[a-z2-7]{16}$")))]
        pub struct $name([u8; ID_CHARS]);

        impl $name {
            /// The id that stands for these ten random bytes.
            pub fn from_random(bytes: [u8; 10]) -> Self {
                Self(base32(bytes))
            }

            /// # Errors
            /// [`NameError::Id`] when the text is not 16 characters of `a–z2–7`.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                let bytes: [u8; ID_CHARS] =
                    text.as_bytes().try_into().map_err(|_| NameError::Id)?;
                if bytes.iter().all(|byte| ID_ALPHABET.contains(byte)) {
                    Ok(Self(bytes))
                } else {
                    Err(NameError::Id)
                }
            }

            pub fn as_str(&self) -> &str {
                // Only ASCII can be inside, so the fallback is never taken.
                std::str::from_utf8(&self.0).unwrap_or_default()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        text_on_the_wire!($name);
    };
}

opaque_id!(
    /// One isolated machine. Paths, cgroups, sockets and placeholders are keyed by it.
    BoxId
);
opaque_id!(
    /// One conversation in a box.
    ThreadId
);

fn base32(bytes: [u8; 10]) -> [u8; ID_CHARS] {
    let mut bits = bytes
        .iter()
        .fold(0u128, |bits, byte| (bits << 8) | u128::from(*byte));
    let mut out = [0; ID_CHARS];
    for place in out.iter_mut().rev() {
        *place = ID_ALPHABET[(bits & 31) as usize];
        bits >>= 5;
    }
    out
}

/// A decision's number, counted up by the host so that a person can type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(transparent)]
pub struct DecisionId(pub i64);

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name a person gives a box: `[a-z][a-z0-9-]{0,62}`, unique per owner among live boxes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[cfg_attr(test, schemars(extend("pattern" = r"^(?!all$)[a-z][a-z0-9-]{0,62}$")))]
#[serde(try_from = "String", into = "String")]
pub struct BoxName(String);

impl BoxName {
    /// # Errors
    /// [`NameError::Name`] for a malformed name, [`NameError::Reserved`] for `all`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let mut chars = text.chars();
        let starts_well = chars.next().is_some_and(|first| first.is_ascii_lowercase());
        let goes_on_well = chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !starts_well || !goes_on_well || text.len() > NAME_CHARS_MAX {
            Err(NameError::Name)
        } else if text == "all" {
            Err(NameError::Reserved)
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
text_on_the_wire!(BoxName);

/// Free text shown beside the name: 1–100 characters, no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[cfg_attr(test, schemars(extend("pattern" = r"^[^\x00-\x1f\x7f-\x9f]{1,100}$")))]
#[serde(try_from = "String", into = "String")]
pub struct BoxTitle(String);

impl BoxTitle {
    /// # Errors
    /// [`NameError::Title`] when empty, too long or holding a control character.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let chars = text.chars().count();
        if chars == 0 || chars > TITLE_CHARS_MAX || text.chars().any(char::is_control) {
            return Err(NameError::Title);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
text_on_the_wire!(BoxTitle);

/// Whose a box, a thread, a decision or a credential is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema), ts(type = "string"))]
#[cfg_attr(test, schemars(extend("pattern" = r"^uid:[0-9]+$")))]
#[serde(try_from = "String", into = "String")]
pub enum Owner {
    /// A user of this machine, as the kernel reports the caller of the control socket.
    Uid(u32),
}

impl Owner {
    /// # Errors
    /// [`NameError::Owner`] when the text is not `uid:<number>`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        text.strip_prefix("uid:")
            .and_then(|digits| digits.parse().ok())
            .map(Self::Uid)
            .ok_or(NameError::Owner)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => write!(f, "uid:{uid}"),
        }
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> Self {
        owner.to_string()
    }
}

impl TryFrom<String> for Owner {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn box_names_are_parsed_at_the_door() {
        for good in ["a", "demo", "a-1", &"a".repeat(63)] {
            assert!(BoxName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "1a",
            "-a",
            "Ab",
            "a_b",
            "a/b",
            "ä",
            "a.b",
            &"a".repeat(64),
        ] {
            assert_eq!(BoxName::parse(bad), Err(NameError::Name), "{bad}");
        }
        assert_eq!(BoxName::parse("all"), Err(NameError::Reserved));
        assert!(serde_json::from_str::<BoxName>("\"../x\"").is_err());
    }

    #[test]
    fn ids_keep_all_eighty_bits() {
        assert_eq!(BoxId::from_random([0; 10]).as_str(), "aaaaaaaaaaaaaaaa");
        assert_eq!(BoxId::from_random([255; 10]).as_str(), "7777777777777777");
        let mut bytes = [0; 10];
        bytes[9] = 1;
        assert_eq!(BoxId::from_random(bytes).as_str(), "aaaaaaaaaaaaaaab");
        assert!(BoxId::parse("aaaaaaaaaaaaaaa1").is_err());
        assert!(BoxId::parse("../../etc/passwd").is_err());
    }

    #[test]
    fn owners_survive_the_wire() {
        let text = serde_json::to_string(&Owner::Uid(1000)).unwrap();
        assert_eq!(text, "\"uid:1000\"");
        assert_eq!(
            serde_json::from_str::<Owner>(&text).unwrap(),
            Owner::Uid(1000)
        );
        assert!(Owner::parse("uid:-1").is_err());
    }
}
