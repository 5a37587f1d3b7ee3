//! How a message lies in a packet: two lengths, JSON, and an appendix that may be a secret.
//!
//! `u32` little-endian length of the JSON, `u32` little-endian length of the appendix, the JSON,
//! the appendix. Nothing follows. A message whose JSON does not fit into [`JSON_BYTES_MAX`] lies
//! in a file instead (a sealed memfd), which is then the packet's *first* descriptor; the length
//! of the JSON is 0 and the file, at most [`FILE_BYTES_MAX`], is the whole JSON. The appendix
//! always lies in the packet, so that it can be wiped.

use super::SECRET_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// Longest JSON inside a packet. Small enough for the default socket buffer (212,992 bytes).
pub const JSON_BYTES_MAX: usize = 64 << 10;
/// Longest packet.
pub const PACKET_BYTES_MAX: usize = HEAD_BYTES + JSON_BYTES_MAX + SECRET_BYTES_MAX;
/// Longest JSON in a file.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Most descriptors of one packet.
pub const DESCRIPTORS_MAX: usize = 8;
const HEAD_BYTES: usize = 8;

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    #[error("the packet's lengths do not fit its size")]
    Length,
    #[error("the message is longer than {FILE_BYTES_MAX} bytes")]
    TooLong,
    #[error("the appendix is longer than {SECRET_BYTES_MAX} bytes")]
    SecretTooLong,
    #[error("the packet's JSON is not a known message: {0}")]
    Json(#[from] serde_json::Error),
}

/// A message ready to be sent: the packet, and the JSON that goes into a file beside it, if any.
/// The packet holds the appendix; whoever sends it wipes it afterwards.
pub struct Encoded {
    pub packet: Vec<u8>,
    pub file: Option<Vec<u8>>,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({} bytes, not shown)", self.packet.len())
    }
}

/// Lays a message out.
///
/// # Errors
/// [`PacketError::TooLong`] or [`PacketError::SecretTooLong`] when it exceeds a limit.
pub fn encode(message: &impl Serialize, secret: &[u8]) -> Result<Encoded, PacketError> {
    if secret.len() > SECRET_BYTES_MAX {
        return Err(PacketError::SecretTooLong);
    }
    let json = serde_json::to_vec(message)?;
    if json.len() > FILE_BYTES_MAX {
        return Err(PacketError::TooLong);
    }
    let (inline, file) = if json.len() > JSON_BYTES_MAX {
        (Vec::new(), Some(json))
    } else {
        (json, None)
    };
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| PacketError::TooLong);
    // With the whole capacity from the start the secret is never copied by growing.
    let mut packet = Vec::with_capacity(HEAD_BYTES + inline.len() + secret.len());
    packet.extend_from_slice(&length(&inline)?.to_le_bytes());
    packet.extend_from_slice(&length(secret)?.to_le_bytes());
    packet.extend_from_slice(&inline);
    packet.extend_from_slice(secret);
    Ok(Encoded { packet, file })
}

/// A packet's parts.
pub struct Parts<'packet> {
    /// Empty: the JSON is in the first descriptor.
    pub json: &'packet [u8],
    pub secret: &'packet [u8],
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Parts({} and {} bytes, not shown)",
            self.json.len(),
            self.secret.len()
        )
    }
}

/// Takes a packet apart.
///
/// # Errors
/// [`PacketError::Length`] when the lengths and the size differ.
pub fn split(packet: &[u8]) -> Result<Parts<'_>, PacketError> {
    let (json_bytes, rest) = packet.split_first_chunk::<4>().ok_or(PacketError::Length)?;
    let (secret_bytes, rest) = rest.split_first_chunk::<4>().ok_or(PacketError::Length)?;
    let json_bytes = u32::from_le_bytes(*json_bytes) as usize;
    let secret_bytes = u32::from_le_bytes(*secret_bytes) as usize;
    if json_bytes > JSON_BYTES_MAX || json_bytes.saturating_add(secret_bytes) != rest.len() {
        return Err(PacketError::Length);
    }
    let (json, secret) = rest.split_at(json_bytes);
    if secret.len() > SECRET_BYTES_MAX {
        return Err(PacketError::SecretTooLong);
    }
    Ok(Parts { json, secret })
}

/// Reads the JSON of a message.
///
/// # Errors
/// [`PacketError::Json`] when it is not one.
pub fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, PacketError> {
    if json.len() > FILE_BYTES_MAX {
        return Err(PacketError::TooLong);
    }
    Ok(serde_json::from_slice(json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_lies_behind_the_json_and_not_in_it() {
        let encoded = encode(&"message", b"S3CRET").unwrap();
        let parts = split(&encoded.packet).unwrap();
        assert_eq!(parts.json, b"\"message\"");
        assert_eq!(parts.secret, b"S3CRET");
        assert!(encoded.file.is_none());
    }

    #[test]
    fn long_message_goes_into_a_file() {
        let long = "x".repeat(JSON_BYTES_MAX);
        let encoded = encode(&long, b"S3CRET").unwrap();
        assert!(split(&encoded.packet).unwrap().json.is_empty());
        assert_eq!(decode::<String>(&encoded.file.unwrap()).unwrap(), long);
    }

    #[test]
    fn packet_with_wrong_lengths_is_refused() {
        let mut packet = encode(&"message", b"S3CRET").unwrap().packet;
        packet.push(0);
        assert!(matches!(split(&packet), Err(PacketError::Length)));
        assert!(matches!(split(&packet[..6]), Err(PacketError::Length)));
    }
}
