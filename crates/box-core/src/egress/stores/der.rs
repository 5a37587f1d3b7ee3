//! The three fields of a certificate its database is asked by (RFC 5280 §4.1).

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// Each whole, with its tag and length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names<'a> {
    pub(super) serial: &'a [u8],
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
}

/// `None` for what is no certificate.
pub(super) fn names(certificate: &[u8]) -> Option<Names<'_>> {
    let (outer, _) = element(certificate, SEQUENCE)?;
    let (signed, _) = element(outer.content, SEQUENCE)?;
    let rest = element(signed.content, VERSION).map_or(signed.content, |(_, rest)| rest);
    let (serial, rest) = element(rest, INTEGER)?;
    let (_algorithm, rest) = element(rest, SEQUENCE)?;
    let (issuer, rest) = element(rest, SEQUENCE)?;
    let (_validity, rest) = element(rest, SEQUENCE)?;
    let (subject, _) = element(rest, SEQUENCE)?;
    Some(Names {
        serial: serial.whole,
        issuer: issuer.whole,
        subject: subject.whole,
    })
}

struct Element<'a> {
    whole: &'a [u8],
    content: &'a [u8],
}

/// The first element of `bytes` if it has this tag, and what comes after it (X.690 §8.1).
fn element(bytes: &[u8], tag: u8) -> Option<(Element<'_>, &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = length
                .iter()
                .fold(0, |so_far, byte| so_far << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, after) = rest.split_at_checked(length)?;
    let whole = bytes.get(..bytes.len() - after.len())?;
    Some((Element { whole, content }, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_short_it_is_no_certificate() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::default();
        parameters.serial_number = Some(rcgen::SerialNumber::from(77_u64));
        let certificate = parameters.self_signed(&key).unwrap();
        let der = certificate.der();
        let found = names(der).unwrap();
        assert_eq!(found.serial, [INTEGER, 1, 77]);
        assert_eq!(found.issuer, found.subject);
        assert_eq!(found.issuer[0], SEQUENCE);
        for length in 0..der.len() {
            assert_eq!(names(&der[..length]), None, "{length} bytes");
        }
    }
}
