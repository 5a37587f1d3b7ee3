//! `cert9.db` of NSS, where Chromium and its kin look for roots beside their own: an `SQLite` table of
//! PKCS #11 objects, two a root. Without a `key4.db` beside it there is no password, and so nothing
//! that would have to be signed; NSS makes one of its own.

use super::{Der, der};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rusqlite::{Connection, params};
use std::fs;
use std::io;
use std::path::Path;

/// As NSS 3.87 makes it (`softoken/sdb.c`); later versions add the columns they want.
const SCHEMA: &str = "CREATE TABLE nssPublic (id PRIMARY KEY UNIQUE ON CONFLICT ABORT, a0, a1, a2, a3, \
    a10, a11, a12, a80, a81, a82, a83, a84, a85, a86, a87, a88, a89, a8a, a8b, a90, a100, a101, a102, \
    a103, a104, a105, a106, a107, a108, a109, a10a, a10b, a10c, a110, a111, a120, a121, a122, a123, \
    a124, a125, a126, a127, a128, a129, a130, a131, a132, a133, a134, a160, a161, a162, a163, a164, \
    a165, a166, a170, a180, a181, a200, a201, a202, a210, a300, a301, a302, a400, a401, a402, a403, \
    a404, a405, a406, a480, a481, a482, a500, a501, a502, a503, a40000211, a40000212, a80000001, \
    ace534351, ace534352, ace534353, ace534354, ace534355, ace534356, ace534357, ace534358, ace534364, \
    ace534365, ace534366, ace534367, ace534368, ace534369, ace534373, ace534374, ace536351, ace536352, \
    ace536353, ace536354, ace536355, ace536356, ace536357, ace536358, ace536359, ace53635a, ace53635b, \
    ace53635c, ace53635d, ace53635e, ace53635f, ace536360, ace5363b4, ace5363b5, ad5a0db00); \
    CREATE INDEX issuer ON nssPublic (a81); CREATE INDEX subject ON nssPublic (a101); \
    CREATE INDEX label ON nssPublic (a3); CREATE INDEX ckaid ON nssPublic (a102);";

/// Columns: class, token, private, label, value, certificate type, issuer, serial, subject, id,
/// modifiable.
const CERTIFICATE: &str = "INSERT INTO nssPublic (id, a0, a1, a2, a3, a11, a80, a81, a82, a101, a102, \
    a170) VALUES (?1, x'00000001', x'01', x'00', ?2, ?3, x'00000000', ?4, ?5, ?6, ?7, x'01')";
/// Class `CKO_NSS_TRUST`. For servers `CKT_NSS_TRUSTED_DELEGATOR`, for all else to be verified; the
/// last is the certificate's SHA-1. An empty label is `a5005a`.
const TRUST: &str = "INSERT INTO nssPublic (id, a0, a1, a2, a3, a81, a82, a170, ace536358, ace536359, \
    ace53635a, ace53635b, ace536360, ace5363b4) VALUES (?1, x'ce534353', x'01', x'00', x'a5005a', ?2, \
    ?3, x'01', x'ce534352', x'ce53435b', x'ce534353', x'ce534353', x'00', ?4)";

/// A database that trusts these certificates for servers, made in `folder`.
pub(super) fn database(certificates: &[Der], folder: &Path) -> io::Result<Vec<u8>> {
    let path = folder.join("cert9.db");
    super::gone(&path)?;
    fill(certificates, &path).map_err(io::Error::other)?;
    let made = fs::read(&path)?;
    super::gone(&path)?;
    Ok(made)
}

fn fill(certificates: &[Der], path: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(SCHEMA)?;
    let step = connection.transaction()?;
    let mut id: u32 = 0;
    for certificate in certificates {
        let Some(names) = der::names(certificate) else {
            continue;
        };
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, certificate);
        let (serial, issuer) = (names.serial, names.issuer);
        id += 2;
        let label = format!("box-{id:04}").into_bytes();
        step.execute(
            CERTIFICATE,
            params![
                id - 1,
                label,
                certificate,
                issuer,
                serial,
                names.subject,
                hash.as_ref()
            ],
        )?;
        step.execute(TRUST, params![id, issuer, serial, hash.as_ref()])?;
    }
    step.commit()
}
