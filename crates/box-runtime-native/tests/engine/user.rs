//! Shows a claim as an ordinary user: a copy of this program is run as one.

use box_fakes::{Account, Ids};
use std::os::unix::fs::PermissionsExt as _;
use std::process::ExitCode;

/// What the claims of each kind of user are called, before `::`.
pub(crate) const KINDS: [(&str, Ids); 2] = [("ranges", Ids::Range), ("one_id", Ids::Own)];

/// `<kind>::<claim>`
pub(crate) fn shows(name: &str) -> ExitCode {
    let (kind, claim) = name.split_once("::").unwrap();
    let (_, ids) = KINDS.into_iter().find(|(known, _)| *known == kind).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let account = Account::make(folder.path(), ids).unwrap();
    let program = folder.path().join("engine");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let tmp = folder.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    account.give(&tmp).unwrap();
    let mut command = account.command(&program);
    command.args([claim, "--exact"]).env("TMPDIR", &tmp);
    let status = command.current_dir(folder.path()).status().unwrap();
    let left = crate::harness::names(&tmp);
    assert!(
        !status.success() || left.is_empty(),
        "left behind: {left:?}"
    );
    // The copy of /etc is laid over the real one; with the mounts it can go.
    rustix::mount::unmount("/etc", rustix::mount::UnmountFlags::DETACH).unwrap();
    ExitCode::from(u8::from(!status.success()))
}
