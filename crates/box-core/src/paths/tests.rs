//! Where things are, for whom.

use super::*;

fn with<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
    move |name| {
        set.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).into())
    }
}

#[test]
fn root_has_the_systems_places() {
    assert_eq!(
        Paths::of_user(0, &with(&[("HOME", "/root")])).unwrap(),
        Paths::system()
    );
}

#[test]
fn a_user_has_the_xdg_places() {
    let paths = Paths::of_user(1000, &with(&[("HOME", "/home/ann")])).unwrap();
    assert_eq!(paths.data, Path::new("/home/ann/.local/share/box"));
    assert_eq!(paths.run, Path::new("/tmp/box-1000"));
    assert_eq!(paths.config, Path::new("/home/ann/.config/box/config.toml"));
    let set = [
        ("HOME", "/home/ann"),
        ("XDG_RUNTIME_DIR", "/run/user/1000"),
        ("XDG_DATA_HOME", ""),
    ];
    let paths = Paths::of_user(1000, &with(&set)).unwrap();
    assert_eq!(
        paths.control_socket(),
        Path::new("/run/user/1000/box/control.sock")
    );
    assert_eq!(paths.data, Path::new("/home/ann/.local/share/box"));
}

#[test]
fn overrides_win_and_take_the_log_along() {
    let set = [
        ("BOX_DATA_DIR", "/srv/b"),
        ("BOX_RUN_DIR", "/srv/r"),
        ("BOX_CONFIG", "/srv/c"),
    ];
    let paths = Paths::of_user(0, &with(&set)).unwrap();
    assert_eq!(paths.log, Path::new("/srv/b/log"));
    assert_eq!(paths.run, Path::new("/srv/r"));
    assert_eq!(paths.config, Path::new("/srv/c"));
}

#[test]
fn a_run_folder_too_deep_for_a_socket_is_refused() {
    let run = |bytes: usize| format!("/{}", "r".repeat(bytes - 1));
    let fits = run(SOCKET_PATH_BYTES_MAX - LONGEST_SOCKET.len());
    assert!(Paths::of_user(0, &with(&[("BOX_RUN_DIR", &fits)])).is_ok());
    let deep = run(SOCKET_PATH_BYTES_MAX - LONGEST_SOCKET.len() + 3);
    let refused = Paths::of_user(0, &with(&[("BOX_RUN_DIR", &deep)])).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("the run folder `{deep}` is too long for a socket by 3 bytes")
    );
}

#[test]
fn places_that_cannot_be_named_are_refused() {
    assert_eq!(
        Paths::of_user(1000, &with(&[])).unwrap_err().to_string(),
        "neither `XDG_DATA_HOME` nor `HOME` is set"
    );
    assert!(matches!(
        Paths::of_user(0, &with(&[("BOX_DATA_DIR", "data")])),
        Err(PathsError::Relative {
            variable: "BOX_DATA_DIR",
            ..
        })
    ));
}
