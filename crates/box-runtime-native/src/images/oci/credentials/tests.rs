//! Tests of finding logins, with files and helpers made here.

use super::*;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

struct Rig(TempDir);

impl Rig {
    fn new(file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), file).unwrap();
        Self(folder)
    }

    /// A helper that is this script.
    fn helper(&self, name: &str, script: &str) {
        let path = self.0.path().join(format!("docker-credential-{name}"));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn of(&self, name: &str) -> Result<String, String> {
        let path = Some(self.0.path().as_os_str().to_owned());
        let logins = Logins::in_file(&self.0.path().join("config.json"), path);
        match logins.of(&OciName::parse(name).unwrap()) {
            Ok(Login::Nobody) => Ok("nobody".to_owned()),
            Ok(Login::Password { user, secret }) => Ok(format!("{user} {}", *secret)),
            Ok(Login::Token(token)) => Ok(format!("token {}", *token)),
            Err(error) => Err(error
                .to_string()
                .replace(self.0.path().to_str().unwrap(), "/files")),
        }
    }
}

fn auth(user: &str, secret: &str) -> String {
    STANDARD.encode(format!("{user}:{secret}"))
}

#[test]
fn logins_are_found_as_docker_and_podman_write_them() {
    let entry = |key: &str, user: &str| format!(r#""{key}": {{"auth": "{}"}}"#, auth(user, "s:e"));
    let auths = [
        entry("https://index.docker.io/v1/", "hub"),
        entry("reg.example:5000", "plain"),
        entry("reg.example:5000/team", "team"),
        entry("http://old.example/v2/", "old"),
        r#""id.example": {"auth": "", "identitytoken": "refresh"}"#.to_owned(),
        r#""none.example": {}"#.to_owned(),
    ];
    let rig = Rig::new(&format!(
        r#"{{"auths": {{{}}}, "HttpHeaders": {{"User-Agent": "x"}}}}"#,
        auths.join(", ")
    ));
    for (name, login) in [
        ("alpine", "hub s:e"),
        ("reg.example:5000/other/x", "plain s:e"),
        ("reg.example:5000/team/x", "team s:e"),
        ("reg.example:5000/teams/x", "plain s:e"),
        ("old.example/a", "old s:e"),
        ("id.example/a", "token refresh"),
        ("none.example/a", "nobody"),
        ("reg.example/a", "nobody"),
        ("localhost/a", "nobody"),
    ] {
        assert_eq!(rig.of(name).as_deref(), Ok(login), "{name}");
    }
}

#[test]
fn helpers_are_asked_for_their_registry_and_only_that() {
    let rig = Rig::new(
        r#"{"auths": {"a.example": {}}, "credsStore": "all",
            "credHelpers": {"one.example": "one", "https://two.example": "two",
                            "bad.example": "../../bin/sh", "gone.example": "gone",
                            "broken.example": "broken", "odd.example": "odd"}}"#,
    );
    let echo = r#"read registry; echo "{\"ServerURL\": \"\", \"Username\": \"$1\", \"Secret\": \"$registry\"}""#;
    rig.helper("all", echo);
    rig.helper("one", &echo.replace("$1", "<token>"));
    rig.helper(
        "two",
        "echo 'credentials not found in native keychain'; exit 1",
    );
    rig.helper("broken", "echo 'the keys are locked'; exit 3");
    rig.helper("odd", "echo hello");
    for (name, login) in [
        ("a.example/x", "get a.example"),
        ("alpine", "get https://index.docker.io/v1/"),
        ("one.example/x", "token one.example"),
        ("two.example/x", "nobody"),
    ] {
        assert_eq!(rig.of(name).as_deref(), Ok(login), "{name}");
    }
    let refused = |name: &str| {
        let why = rig.of(&format!("{name}.example/x")).unwrap_err();
        why.split_once("example`: ").unwrap().1.to_owned()
    };
    assert_eq!(refused("bad"), "that is no name of a helper");
    assert_eq!(refused("gone"), "it is not installed");
    assert_eq!(refused("broken"), "exit status: 3: the keys are locked");
    assert_eq!(refused("odd"), "its answer cannot be read");
}

#[test]
fn files_that_cannot_be_read_are_named_without_what_is_in_them() {
    let why = Rig::new(r#"{"auths": {"a.example": {"auth": "c2VjcmV0"}}}"#);
    assert_eq!(
        why.of("a.example/x").unwrap_err(),
        "could not read the logins in `/files/config.json`: a login in it is not \
         `user:password` in base64"
    );
    let told = Rig::new(r#"{"auths": {"a.example": {"auth": 5}}}"#).of("a.example/x");
    assert!(told.unwrap_err().starts_with("could not read the logins"));
    let absent = Rig::new("{}");
    std::fs::remove_file(absent.0.path().join("config.json")).unwrap();
    assert_eq!(absent.of("a").as_deref(), Ok("nobody"));
}

#[test]
fn the_places_are_those_docker_and_podman_use() {
    let logins = Logins::of_user(&|name| match name {
        "HOME" => Some("/home/me".into()),
        "XDG_RUNTIME_DIR" => Some("/run/user/7".into()),
        _ => None,
    });
    let places: Vec<&str> = logins
        .files
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    let expected = [
        "/run/user/7/containers/auth.json",
        "/run/user/7/auth.json",
        "/home/me/.config/containers/auth.json",
        "/home/me/.docker/config.json",
    ];
    assert_eq!(places, expected);
    let logins = Logins::of_user(&|name| match name {
        "REGISTRY_AUTH_FILE" => Some("/auth".into()),
        "DOCKER_CONFIG" => Some("/docker".into()),
        "XDG_CONFIG_HOME" => Some("/config".into()),
        _ => None,
    });
    assert_eq!(logins.files[0], Path::new("/auth"));
    assert_eq!(logins.files[4], Path::new("/docker/config.json"));
    assert_eq!(logins.files[3], Path::new("/config/containers/auth.json"));
}
