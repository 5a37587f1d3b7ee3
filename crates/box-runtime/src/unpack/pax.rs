//! Extended headers as POSIX has them (pax(1), *pax Extended Header*): `LENGTH KEY=VALUE\n`.

/// What a header says that matters here. Everything else is dropped.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Extended {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) mtime: Option<i64>,
    /// One of GNU's three ways to say that the file has holes.
    pub(super) sparse: bool,
    /// Attributes, marks of our own and the whole time, for [`crate::archive`]; nobody else looks.
    pub(super) kept: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Extended {
    /// Reads the records of one header on top of what is known.
    pub(super) fn read(&mut self, mut data: &[u8]) -> Result<(), &'static str> {
        while !data.is_empty() {
            let (record, rest) = record(data).ok_or("bad record in an extended header")?;
            data = rest;
            let equals = record.iter().position(|byte| *byte == b'=');
            let (key, value) = record.split_at(equals.ok_or("record without `=`")?);
            self.set(key, &value[1..])?;
        }
        Ok(())
    }

    /// Whether it decides what an entry is, which a global header may not.
    pub(super) fn decides(&self) -> bool {
        *self
            != Self {
                mtime: self.mtime,
                kept: self.kept.clone(),
                ..Self::default()
            }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(number(value)?),
            b"uid" => self.uid = Some(number(value)?),
            b"gid" => self.gid = Some(number(value)?),
            b"mtime" => {
                self.mtime = Some(seconds(value)?);
                self.kept.push((key.to_vec(), value.to_vec()));
            }
            _ if key.starts_with(b"SCHILY.xattr.") || key.starts_with(b"BOX.") => {
                self.kept.push((key.to_vec(), value.to_vec()));
            }
            _ if key.starts_with(b"GNU.sparse.") => self.sparse = true,
            _ => {}
        }
        Ok(())
    }
}

/// The first record's `KEY=VALUE` and what follows it. `LENGTH` counts itself and the newline.
fn record(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = data.iter().position(|byte| *byte == b' ')?;
    let length = usize::try_from(number(&data[..space]).ok()?).ok()?;
    let record = data.get(space + 1..length)?;
    Some((record.strip_suffix(b"\n")?, &data[length..]))
}

fn number(digits: &[u8]) -> Result<u64, &'static str> {
    let text = std::str::from_utf8(digits).map_err(|_| "bad number in an extended header")?;
    if text.starts_with('+') {
        return Err("bad number in an extended header");
    }
    text.parse().map_err(|_| "bad number in an extended header")
}

/// Whole seconds of `1700000000.123`; before 1970 counts as 1970.
fn seconds(value: &[u8]) -> Result<i64, &'static str> {
    let whole = value.split(|byte| *byte == b'.').next().unwrap_or_default();
    if whole.first() == Some(&b'-') {
        return Ok(0);
    }
    i64::try_from(number(whole)?).map_err(|_| "bad time in an extended header")
}
