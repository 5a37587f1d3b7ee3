//! Part `hosts`: the engine on a machine unlike this one, made for the test and run in software.
//!
//! Debian's kernel for virtual machines, started by QEMU without KVM from a disk that holds the claims
//! as one program ([`PROGRAM`]), the libraries it needs and busybox. It has cgroup v2 with every
//! controller and nothing else. What the program says comes over the serial line.

use crate::run::{self, command, finish, output};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// The example of `box-runtime-native` that holds the claims.
const PROGRAM: &str = "hosts";
/// Names the newest kernel; it is unpacked, not installed.
const KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";
/// Of everything the claims need only this is a module there.
const MODULE: &str = "kernel/fs/overlayfs/overlay.ko";
const DISK_BYTES: u64 = 1 << 30;
const MEMORY_MIB: &str = "2048";
/// Longest the machine may run.
const DEADLINE_SECONDS: &str = "900";
/// The last line of a machine in which every claim held.
const HELD: &str = "every claim holds";

const INIT: &str = "#!/bin/sh
export PATH=/bin HOME=/root BOX_TEST_IMAGE=/image.tar BOX_TEST_SECONDS=200 RUST_BACKTRACE=0
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
insmod /overlay.ko
uname -r
cat /sys/fs/cgroup/cgroup.controllers
/hosts && echo \"every claim\" holds
sync
poweroff -f
";

const APPLETS: [&str; 9] = [
    "sh", "mount", "insmod", "uname", "cat", "echo", "sync", "poweroff", "sleep",
];
const FOLDERS: [&str; 7] = ["bin", "dev", "proc", "sys", "tmp", "run", "root"];

pub(super) fn run() -> Result<()> {
    let build = [
        "build",
        "--package",
        "box-runtime-native",
        "--example",
        PROGRAM,
    ];
    run::run("cargo", &build)?;
    let program = run::top().join("target/debug/examples").join(PROGRAM);
    let place = run::top().join("target").join("test-hosts");
    fs::create_dir_all(&place)?;
    let kernel = Kernel::bring(&place.join("kernel"))?;
    let disk = disk(&place, &program, &kernel)?;
    boot(&kernel, &disk)
}

/// A kernel taken out of its package.
struct Kernel {
    image: PathBuf,
    modules: PathBuf,
}

impl Kernel {
    /// The newest there is; downloaded once.
    fn bring(place: &Path) -> Result<Self> {
        let package = newest_package()?;
        let folder = place.join(&package);
        if !folder.exists() {
            let half = place.join("half");
            drop(fs::remove_dir_all(&half));
            fs::create_dir_all(&half)?;
            let mut download = command("apt-get", &["download", "--quiet", &package]);
            download.current_dir(&half);
            finish(download)?;
            let archive = only_entry(&half, ".deb")?;
            let unpacked = half.join("unpacked");
            let words = [&*archive.to_string_lossy(), &*unpacked.to_string_lossy()];
            run::run("dpkg-deb", &["--extract", words[0], words[1]])?;
            fs::rename(unpacked, &folder)?;
            fs::remove_dir_all(half)?;
        }
        Ok(Self {
            image: only_entry(&folder.join("boot"), "vmlinuz-")?,
            modules: only_entry(&folder.join("lib/modules"), "-amd64")?,
        })
    }
}

/// What the package without a version stands for.
fn newest_package() -> Result<String> {
    let depends = output(command("apt-cache", &["depends", KERNEL_PACKAGE]))?;
    let newest = depends
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "));
    let newest = newest.with_context(|| format!("`{KERNEL_PACKAGE}` stands for no kernel"))?;
    Ok(newest.to_owned())
}

/// The one entry with this in its name.
fn only_entry(folder: &Path, part: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("read `{}`", folder.display()))?;
    let mut named = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().contains(part));
    named
        .next()
        .with_context(|| format!("`{}` has no `{part}`", folder.display()))
}

/// Makes the disk: an ext4 file system, since boxes want one whose mounts can be mapped to other ids.
fn disk(place: &Path, program: &Path, kernel: &Kernel) -> Result<PathBuf> {
    let stage = place.join("stage");
    drop(fs::remove_dir_all(&stage));
    for folder in FOLDERS {
        fs::create_dir_all(stage.join(folder))?;
    }
    let busybox = ["/bin/busybox", "/usr/bin/busybox"];
    let busybox = busybox.iter().map(Path::new).find(|path| path.exists());
    put(
        busybox.context("there is no `busybox`")?,
        &stage.join("bin/busybox"),
    )?;
    for applet in APPLETS {
        symlink("busybox", stage.join("bin").join(applet))?;
    }
    put(&kernel.modules.join(MODULE), &stage.join("overlay.ko"))?;
    put(program, &stage.join(PROGRAM))?;
    for library in libraries(program)? {
        put(&library, &stage.join(library.strip_prefix("/")?))?;
    }
    let image = stage.join("image.tar");
    run::run(
        &program.to_string_lossy(),
        &["pack", &image.to_string_lossy()],
    )?;
    fs::write(stage.join("init"), INIT)?;
    fs::set_permissions(stage.join("init"), fs::Permissions::from_mode(0o755))?;

    let disk = place.join("disk.img");
    let file = fs::File::create(&disk)?;
    file.set_len(DISK_BYTES)?;
    drop(file);
    let (from, to) = (stage.to_string_lossy(), disk.to_string_lossy());
    run::run("mkfs.ext4", &["-q", "-F", "-d", &*from, &*to])?;
    fs::remove_dir_all(&stage)?;
    Ok(disk)
}

/// Copies a program or a library, links followed.
fn put(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("copy `{}`", from.display()))?;
    Ok(())
}

fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let listed = output(command("ldd", &[&*program.to_string_lossy()]))?;
    let paths = listed
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    Ok(paths.map(PathBuf::from).collect())
}

fn boot(kernel: &Kernel, disk: &Path) -> Result<()> {
    let image = kernel.image.to_string_lossy();
    let drive = format!(
        "file={},if=none,id=disk,format=raw,cache=unsafe",
        disk.display()
    );
    let words = [
        DEADLINE_SECONDS,
        "qemu-system-x86_64",
        "-accel",
        "tcg,thread=multi",
        "-machine",
        "q35",
        "-cpu",
        "max",
        "-smp",
        "2",
        "-m",
        MEMORY_MIB,
        "-nodefaults",
        "-display",
        "none",
        "-serial",
        "stdio",
        "-no-reboot",
        "-kernel",
        &*image,
        "-append",
        // NVMe and ext4 are part of that kernel, so that it needs no first file system.
        "console=ttyS0 root=/dev/nvme0n1 rw init=/init quiet panic=-1",
        "-drive",
        &drive,
        "-device",
        "nvme,serial=box,drive=disk",
    ];
    let said = output(command("timeout", &words))?;
    println!("{said}");
    fs::remove_file(disk)?;
    if said.lines().any(|line| line.trim_end() == HELD) {
        return Ok(());
    }
    let failed: Vec<&str> = said
        .lines()
        .filter(|line| line.trim_end().ends_with(": FAILED"))
        .collect();
    bail!("the machine ended without `{HELD}`; {}", failed.join("; "))
}
