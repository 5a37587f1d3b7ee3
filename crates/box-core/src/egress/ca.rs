//! The deployment's own certificate authority: made once, its key readable by the host alone.

use crate::paths::Paths;
use crate::random::Random;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustix::fs::{RenameFlags, renameat_with};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const CERT: &str = "ca.pem";
const KEY: &str = "ca.key";

/// Why there is no CA to work with.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    #[error("could not make the deployment's CA")]
    Make(#[from] rcgen::Error),
    #[error("could not use `{path}`")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The CA as box-egress is given it.
pub(crate) struct Authority {
    pub(crate) cert_pem: String,
    /// PKCS#8.
    pub(crate) key_pem: Zeroizing<String>,
}

/// Reads the CA, and makes it when there is none.
///
/// # Errors
/// [`CaError`] names the file.
pub(crate) fn ensure(paths: &Paths, random: &dyn Random) -> Result<Authority, CaError> {
    let folder = paths.ca_dir();
    if !folder.join(CERT).exists() {
        make(paths, &folder, random)?;
    }
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).map_err(|source| CaError::File { path, source })
    };
    Ok(Authority {
        cert_pem: read(CERT)?,
        key_pem: Zeroizing::new(read(KEY)?),
    })
}

/// Both files are born in a folder that then takes its place, so a crash never leaves one of two.
fn make(paths: &Paths, folder: &Path, random: &dyn Random) -> Result<(), CaError> {
    let born = bear(paths, random)?;
    take_place(&born, folder, RenameFlags::NOREPLACE)
}

/// Another CA in the place of the one there is, at once or not at all. What is made from it stays
/// as it was; the old key is gone.
///
/// # Errors
/// [`CaError`] names the file.
pub(crate) fn replace(paths: &Paths, random: &dyn Random) -> Result<(), CaError> {
    let folder = paths.ca_dir();
    let born = bear(paths, random)?;
    let fail = |source| CaError::File {
        path: folder.clone(),
        source,
    };
    // A box that starts meanwhile finds all it is given.
    for entry in fs::read_dir(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        if name != KEY && name != CERT {
            fs::hard_link(entry.path(), born.join(name)).map_err(fail)?;
        }
    }
    take_place(&born, &folder, RenameFlags::EXCHANGE)?;
    // The old one, by the name of the new one.
    fs::remove_dir_all(&born).map_err(|source| CaError::File { path: born, source })
}

/// A folder with a CA that is new.
fn bear(paths: &Paths, random: &dyn Random) -> Result<PathBuf, CaError> {
    let mark: [u8; 4] = random.bytes();
    let mark = u32::from_be_bytes(mark);
    let key = KeyPair::generate()?;
    let cert = parameters(mark).self_signed(&key)?;

    let born = paths.tmp().join(format!("ca-{mark:08x}"));
    let fail = |source| CaError::File {
        path: born.clone(),
        source,
    };
    DirBuilder::new().mode(0o700).create(&born).map_err(fail)?;
    let key_pem = Zeroizing::new(key.serialize_pem());
    write(&born.join(KEY), key_pem.as_bytes(), 0o600)?;
    write(&born.join(CERT), cert.pem().as_bytes(), 0o644)?;
    Ok(born)
}

fn take_place(born: &Path, folder: &Path, how: RenameFlags) -> Result<(), CaError> {
    let here = rustix::fs::CWD;
    match renameat_with(here, born, here, folder, how) {
        Ok(()) => sync(folder.parent().unwrap_or(folder)),
        Err(error) => Err(CaError::File {
            path: folder.to_owned(),
            source: error.into(),
        }),
    }
}

fn parameters(mark: u32) -> CertificateParams {
    let mut name = DistinguishedName::new();
    name.push(
        DnType::CommonName,
        format!("Boxes on this machine ({mark:08x})"),
    );
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = name;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    // Wide, so that a clock that is wrong does not end every connection; the last year that every
    // client reads the same way (RFC 5280 §4.1.2.5: UTCTime ends in 2049).
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = date_time_ymd(2049, 12, 31);
    parameters
}

fn write(path: &Path, text: &[u8], mode: u32) -> Result<(), CaError> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        });
    written.map_err(|source| CaError::File {
        path: path.to_owned(),
        source,
    })
}

fn sync(folder: &Path) -> Result<(), CaError> {
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| CaError::File {
        path: folder.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandom;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_ca_is_made_once_and_its_key_is_the_hosts_alone() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path()).unwrap();
        fs::create_dir_all(paths.tmp()).unwrap();
        let first = ensure(&paths, &SystemRandom).unwrap();
        let again = ensure(&paths, &SystemRandom).unwrap();
        assert_eq!(first.cert_pem, again.cert_pem);
        assert_eq!(*first.key_pem, *again.key_pem);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&paths.ca_dir().join(KEY)), 0o600);
        assert_eq!(mode(&paths.ca_dir()), 0o700);
        assert!(KeyPair::from_pem(&first.key_pem).is_ok());
    }

    #[test]
    fn another_ca_takes_the_place_of_the_first_and_of_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path()).unwrap();
        fs::create_dir_all(paths.tmp()).unwrap();
        let first = ensure(&paths, &SystemRandom).unwrap();
        fs::write(paths.bundle(), "made of it").unwrap();
        replace(&paths, &SystemRandom).unwrap();
        let second = ensure(&paths, &SystemRandom).unwrap();
        assert_ne!(first.cert_pem, second.cert_pem);
        assert_ne!(*first.key_pem, *second.key_pem);
        assert_eq!(fs::read_to_string(paths.bundle()).unwrap(), "made of it");
        let left = fs::read_dir(paths.tmp()).unwrap().count();
        assert_eq!(left, 0, "the old key is gone");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&paths.ca_dir().join(KEY)), 0o600);
    }
}
