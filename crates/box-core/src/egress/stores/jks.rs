//! A key store of Java, the form every version since the first reads (`sun.security.provider.
//! JavaKeyStore` of OpenJDK): a magic number, entries, a keyed hash over both.

use super::Der;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
const TRUSTED_CERTIFICATE: u32 = 2;
const KIND: &str = "X.509";
/// What every Java's own store is locked with; there is nothing to hide in one.
const PASSWORD: &str = "changeit";
const WHITENER: &[u8] = b"Mighty Aphrodite";
/// When an entry was made, milliseconds since 1970: always the same, so that the same certificates
/// make the same store.
const MADE_AT_MS: u64 = 1_577_836_800_000;

/// A store that trusts these certificates.
pub(super) fn store(certificates: &[Der]) -> Vec<u8> {
    let mut store = Vec::new();
    let number = |store: &mut Vec<u8>, value: u32| store.extend(value.to_be_bytes());
    number(&mut store, MAGIC);
    number(&mut store, VERSION);
    number(&mut store, u32::try_from(certificates.len()).unwrap_or(0));
    for (place, certificate) in certificates.iter().enumerate() {
        number(&mut store, TRUSTED_CERTIFICATE);
        text(&mut store, &format!("box-{place:04}"));
        store.extend(MADE_AT_MS.to_be_bytes());
        text(&mut store, KIND);
        number(&mut store, u32::try_from(certificate.len()).unwrap_or(0));
        store.extend(certificate);
    }
    let hash = hash(&store);
    store.extend(hash);
    store
}

/// `DataOutput.writeUTF` of short ASCII.
fn text(store: &mut Vec<u8>, text: &str) {
    store.extend(u16::try_from(text.len()).unwrap_or(0).to_be_bytes());
    store.extend(text.as_bytes());
}

fn hash(store: &[u8]) -> Vec<u8> {
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for unit in PASSWORD.encode_utf16() {
        hash.update(&unit.to_be_bytes());
    }
    hash.update(WHITENER);
    hash.update(store);
    hash.finish().as_ref().to_vec()
}
