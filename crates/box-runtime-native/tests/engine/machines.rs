//! Disks of other kinds than this machine's own, for as long as a test process lives.
//!
//! A file system in a file, mounted where only this process sees it; the kernel takes mount and
//! loop device back when the process ends, however it ends.

use std::path::Path;
use std::process::Command;

const BYTES: u64 = 3 << 30;
/// There on every machine.
const POINT: &str = "/mnt";

/// Temporary files on the machine's own disk, as always.
pub(crate) fn plain() {}

/// Temporary files on btrfs: folders that are copied in one step.
pub(crate) fn btrfs() {
    put_temporary_files_on("mkfs.btrfs", "btrfs", BYTES);
}

/// Temporary files on XFS: files that share their content.
pub(crate) fn xfs() {
    put_temporary_files_on("mkfs.xfs", "xfs", BYTES);
}

/// Temporary files on a small ext4, which a test may fill.
pub(crate) fn small() {
    put_temporary_files_on("mkfs.ext4", "ext4", 512 << 20);
}

/// Mounts that only this process sees.
pub(crate) fn own_mounts() {
    // SAFETY: this process has one thread, and the flag shares no descriptor table.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
    run("mount", &["--make-rprivate", "/"]);
}

fn put_temporary_files_on(tool: &str, kind: &str, bytes: u64) {
    own_mounts();
    let file = std::env::temp_dir().join(format!("box-engine-disk-{}", std::process::id()));
    std::fs::File::create(&file)
        .unwrap()
        .set_len(bytes)
        .unwrap();
    let device = run("losetup", &["--find", "--show", text(&file)]);
    // The device has it open, and nobody else needs its name.
    std::fs::remove_file(&file).unwrap();
    let device = device.trim();
    run(tool, &["-q", device]);
    run("mount", &["-t", kind, device, POINT]);
    // It goes with the mount, which goes with this process.
    run("losetup", &["--detach", device]);
    #[expect(
        clippy::disallowed_methods,
        reason = "before there is a second thread; every folder of the test is made below it"
    )]
    // SAFETY: this process has one thread.
    unsafe {
        std::env::set_var("TMPDIR", POINT);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What the program printed; it must end well.
fn run(program: &str, arguments: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "a test prepares a disk")]
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("`{program}`: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{program} {arguments:?}`: {told}");
    String::from_utf8(output.stdout).unwrap()
}
