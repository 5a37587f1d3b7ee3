//! What is mounted below a folder that is to go.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Mount points below a folder or at it, the newest first, as this process sees them.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn mounts_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read_to_string("/proc/thread-self/mountinfo")?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let mut points: Vec<PathBuf> = points
        .map(unescaped)
        .filter(|point| point.starts_with(folder))
        .collect();
    points.reverse();
    Ok(points)
}

/// `proc_pid_mountinfo(5)`: space, tab, line end and backslash are written in octal.
fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|three| str::from_utf8(three).ok());
        let code = digits.and_then(|three| u8::from_str_radix(three, 8).ok());
        if let Some(code) = code.filter(|_| *first == b'\\') {
            bytes.push(code);
            rest = after.get(3..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_the_kernel_writes_them() {
        assert_eq!(unescaped(r"/a\040b\134c"), Path::new("/a b\\c"));
        assert_eq!(unescaped("/proc"), Path::new("/proc"));
    }
}
