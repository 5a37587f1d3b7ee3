//! Where boxes lie: whose the folder is, how much room there is, how copies are made.

use super::attempt::{self, Answer, nearest_folder};
use super::finding::{Finding, Level};
use box_api::snapshot::CopyMethod;
use box_runtime_native::attempts::{Attempt, Seen};
use box_server::paths::Paths;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// Below this no image can be made; below the other the first large repository fills the disk.
const ROOM_MIN_MIB: u64 = 500;
const ROOM_GOOD_MIB: u64 = 5 << 10;
/// The default image has 12,000 files.
const INODES_MIN: u64 = 20_000;
const INODES_GOOD: u64 = 200_000;

pub(super) fn look(paths: &Paths) -> Vec<Finding> {
    let mut findings = vec![folder(&paths.data)];
    findings.extend(room(&paths.data));
    findings.extend(copies(&attempt::ask(Attempt::Copies)));
    findings.extend(left_behind(&paths.data));
    findings
}

/// The host refuses a folder of somebody else's, or one others may write to.
fn folder(data: &Path) -> Finding {
    const NAME: &str = "folder";
    let shown = data.display();
    let Ok(about) = std::fs::metadata(data) else {
        let above = nearest_folder(data);
        return if rustix::fs::access(&above, rustix::fs::Access::WRITE_OK).is_ok() {
            Finding::good(NAME, format!("boxes will lie in `{shown}`"))
        } else {
            Finding::new(NAME, Level::Bad, format!("`{shown}` cannot be made"))
                .because(format!("`{}` is not yours to write", above.display()))
                .mended_by("name a folder of your own with `BOX_DATA_DIR`")
        };
    };
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own {
        return Finding::new(
            NAME,
            Level::Bad,
            format!("`{shown}` belongs to user {}", about.uid()),
        )
        .because(format!("you are user {own}"))
        .mended_by("name a folder of your own with `BOX_DATA_DIR`");
    }
    if about.permissions().mode() & 0o022 != 0 {
        return Finding::new(NAME, Level::Bad, format!("others may write to `{shown}`"))
            .because(format!("its mode is {:o}", about.mode() & 0o7777))
            .mended_by(format!("`chmod go-w {shown}`"));
    }
    Finding::good(NAME, format!("boxes lie in `{shown}`"))
}

fn room(data: &Path) -> Vec<Finding> {
    let Ok(about) = rustix::fs::statvfs(nearest_folder(data)) else {
        return Vec::new();
    };
    let free_mib = about.f_bavail.saturating_mul(about.f_frsize) / MIB;
    let mut findings = vec![of_room(data, free_mib)];
    // A file system that makes inodes as it needs them says it has none.
    if about.f_files > 0 {
        findings.extend(of_inodes(data, about.f_favail));
    }
    findings
}

fn of_room(data: &Path, free_mib: u64) -> Finding {
    const NAME: &str = "room";
    let what = format!("{free_mib} MiB are free for boxes");
    let level = if free_mib < ROOM_MIN_MIB {
        Level::Bad
    } else if free_mib < ROOM_GOOD_MIB {
        Level::Less
    } else {
        return Finding::good(NAME, what);
    };
    Finding::new(NAME, level, what)
        .because("an image takes some 200 MiB, a box what is done in it")
        .mended_by(format!(
            "make room where `{}` lies, or name another folder with `BOX_DATA_DIR`",
            data.display()
        ))
}

fn of_inodes(data: &Path, free: u64) -> Option<Finding> {
    let level = if free < INODES_MIN {
        Level::Bad
    } else if free < INODES_GOOD {
        Level::Less
    } else {
        return None;
    };
    Some(
        Finding::new(
            "inodes",
            level,
            format!("{free} more files can be made for boxes"),
        )
        .because("an image has some 12,000 files, a large repository more")
        .mended_by(format!(
            "remove files where `{}` lies, or name another folder with `BOX_DATA_DIR`",
            data.display()
        )),
    )
}

/// Refused: nothing can be written there at all, and that is told by now.
fn copies(answer: &Answer) -> Option<Finding> {
    match answer {
        Answer::Seen(Seen::Copies(method)) => Some(of_method(*method)),
        Answer::Seen(_) | Answer::Refused { .. } => None,
    }
}

/// How snapshots and clones are made.
pub(super) fn of_method(method: CopyMethod) -> Finding {
    const NAME: &str = "copies";
    let what = format!("snapshots and clones are {}", method.words());
    match method {
        CopyMethod::Subvolume | CopyMethod::Reflink => Finding::good(NAME, what),
        CopyMethod::Full => Finding::new(NAME, Level::Less, what)
            .because("this file system cannot share content between files")
            .mended_by("`box up --store btrfs` as root, before the first box; or a folder on btrfs or XFS with `BOX_DATA_DIR`"),
    }
}

/// What a killed drill left.
fn left_behind(data: &Path) -> Option<Finding> {
    let names = std::fs::read_dir(data).ok()?.flatten();
    let left = names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("drill-"))
        .count();
    (left > 0).then(|| {
        Finding::new(
            "drills",
            Level::Note,
            format!("{left} drills run, or were killed"),
        )
        .mended_by("`box drill` ends what an earlier one left")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn room_and_inodes_are_judged_at_their_bounds() {
        use Level::{Bad, Good, Less};
        let data = Path::new("/d");
        let levels = [0, 499, 500, 5119, 5120].map(|mib| of_room(data, mib).level);
        assert_eq!(levels, [Bad, Bad, Less, Less, Good]);
        let level = |free| of_inodes(data, free).map(|finding| finding.level);
        assert_eq!(
            [0, 20_000, 200_000].map(level),
            [Some(Bad), Some(Less), None]
        );
    }

    #[test]
    fn a_folder_others_may_write_to_is_no_place_for_boxes() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(folder(data.path()).level, Level::Good);
        std::fs::set_permissions(data.path(), Permissions::from_mode(0o777)).unwrap();
        let finding = folder(data.path());
        assert_eq!(finding.level, Level::Bad);
        assert!(finding.fix.unwrap().starts_with("`chmod go-w /"));
        assert_eq!(folder(&data.path().join("new/one")).level, Level::Good);
    }
}
