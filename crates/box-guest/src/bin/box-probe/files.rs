//! Paths, devices and roots.

use crate::outcome::Outcome;
use crate::words::{Usage, Words};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

const READ_BYTES: u64 = 64;

pub(crate) fn open(words: &Words) -> Result<Outcome, Usage> {
    Ok(Outcome::of(File::open(words.text(0)?).map(drop)))
}

/// Opens and reads a few bytes: some files refuse only then.
pub(crate) fn read(words: &Words) -> Result<Outcome, Usage> {
    let mut bytes = Vec::new();
    let read = File::open(words.text(0)?)
        .and_then(|file| file.take(READ_BYTES).read_to_end(&mut bytes))
        .map(drop);
    Ok(Outcome::of(read).with(format!("{} bytes", bytes.len())))
}

/// Opens for writing and writes nothing; a file it made is removed.
pub(crate) fn write(words: &Words) -> Result<Outcome, Usage> {
    let path = words.text(0)?;
    let mut options = OpenOptions::new();
    options
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    let opened = match options.open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            let made = options.create_new(true).mode(0o600).open(path).map(drop);
            if made.is_ok() {
                drop(std::fs::remove_file(path));
            }
            made
        }
        opened => opened.map(drop),
    };
    Ok(Outcome::of(opened))
}

pub(crate) fn device(words: &Words) -> Result<Outcome, Usage> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK);
    Ok(Outcome::of(options.open(words.text(0)?).map(drop)))
}

/// Makes a device file, and says whether it can be opened too.
pub(crate) fn mknod(words: &Words) -> Result<Outcome, Usage> {
    let path = words.c_text(0)?;
    let kind = match words.text(1)? {
        "b" => libc::S_IFBLK,
        "c" => libc::S_IFCHR,
        _ => return Err(Usage),
    };
    let device = libc::makedev(words.number(2)?, words.number(3)?);
    // SAFETY: the path ends with zero and lives until the call is over.
    let made = unsafe { libc::mknod(path.as_ptr(), kind | 0o600, device) };
    let outcome = Outcome::of_call(made.into());
    if made != 0 {
        return Ok(outcome);
    }
    let opened = File::open(words.text(0)?).map(drop);
    drop(std::fs::remove_file(words.text(0)?));
    Ok(match opened {
        Ok(()) => outcome.with("and it opens"),
        Err(error) => outcome.with(format!("but it does not open: {error}")),
    })
}

/// A handle for a path, opened again without the path: so containers were left that had
/// `CAP_DAC_READ_SEARCH` (`open_by_handle_at(2)`).
pub(crate) fn open_by_handle(words: &Words) -> Result<Outcome, Usage> {
    const HANDLE_BYTES: u32 = 128;
    /// `struct file_handle` with room for its bytes.
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        content: [u8; HANDLE_BYTES as usize],
    }
    let path = words.c_text(0)?;
    let mut handle = Handle {
        bytes: HANDLE_BYTES,
        kind: 0,
        content: [0; HANDLE_BYTES as usize],
    };
    let mut mount = 0_i32;
    let handle_at: *mut Handle = &raw mut handle;
    // SAFETY: `handle` says how many bytes it has room for; `mount` takes an int; both and the
    // path outlive the call.
    let named = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle_at,
            &raw mut mount,
            0,
        )
    };
    if named != 0 {
        return Ok(Outcome::of_call(named).with("no handle could be made"));
    }
    // SAFETY: the handle was filled by the call before and outlives this one.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            libc::AT_FDCWD,
            handle_at,
            libc::O_RDONLY,
        )
    };
    Ok(Outcome::of_call(opened))
}

/// The classic way out of a chroot: keep a folder outside of a second one, walk up from it.
pub(crate) fn chroot_escape(words: &Words) -> Result<Outcome, Usage> {
    const UP_MAX: usize = 64;
    let folder = words.text(0)?;
    let path = words.c_text(0)?;
    let Ok(before) = std::fs::metadata("/") else {
        return Ok(Outcome::not_tried("`/` cannot be looked at"));
    };
    // SAFETY: a constant text that ends with zero; changes nothing where it is allowed.
    let may = unsafe { libc::chroot(c"/".as_ptr()) };
    if may != 0 {
        return Ok(Outcome::of_call(may.into()).with("chroot"));
    }
    if let Err(error) = std::fs::create_dir(folder) {
        return Ok(Outcome::not_tried(format!(
            "`{folder}` cannot be made: {error}"
        )));
    }
    // SAFETY: the path ends with zero and lives until the call is over.
    let chrooted = unsafe { libc::chroot(path.as_ptr()) };
    if chrooted != 0 {
        return Ok(Outcome::of_call(chrooted.into()).with("the first chroot"));
    }
    for _ in 0..UP_MAX {
        drop(std::env::set_current_dir(".."));
    }
    // SAFETY: a constant text that ends with zero.
    let out = unsafe { libc::chroot(c".".as_ptr()) };
    if out != 0 {
        return Ok(Outcome::of_call(out.into()).with("the second chroot"));
    }
    drop(std::fs::remove_dir(folder));
    let same = std::fs::metadata("/")
        .is_ok_and(|after| (after.dev(), after.ino()) == (before.dev(), before.ino()));
    Ok(if same {
        Outcome::Refused {
            errno: "NONE".to_owned(),
            detail: Some("still the same root".to_owned()),
        }
    } else {
        Outcome::ok().with("another root")
    })
}
