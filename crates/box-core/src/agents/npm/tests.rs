//! Tests of reading npm's configuration.

use super::*;

/// A home with an npmrc; variables as given, nothing else of the machine but its global npmrc.
fn config(npmrc: &str, variables: &[(&str, &str)], npm_says: Option<&str>) -> Option<NpmConfig> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(".npmrc"), npmrc).unwrap();
    let variable = |name: &str| match name {
        "HOME" => Some(home.path().as_os_str().to_owned()),
        _ => variables
            .iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.into()),
    };
    NpmConfig::read(&variable, npm_says).unwrap()
}

#[test]
fn without_npm_the_variables_come_before_the_file() {
    let file = "registry=http://file.test/npm\ncafile=/ca.pem\n; a comment\n# another\n";
    let only_file = config(file, &[], None).unwrap();
    assert_eq!(only_file.registry_of("a"), "http://file.test/npm/");
    assert_eq!(only_file.cafile.as_deref(), Some(Path::new("/ca.pem")));
    for name in ["npm_config_registry", "NPM_CONFIG_REGISTRY"] {
        let both = config(file, &[(name, "https://variable.test")], None).unwrap();
        assert_eq!(both.registry_of("a"), "https://variable.test/");
    }
    assert!(config("", &[], None).is_none(), "no registry is made up");
}

#[test]
fn with_npm_its_word_counts_and_the_files_give_the_tokens() {
    let says = r#"{"registry":"http://said.test/","@own:registry":"http://own.test/x","cafile":null,
        "noproxy":[""],"strict-ssl":true}"#;
    let npmrc = "registry=http://file.test/\n//said.test/:_authToken=${TOKEN}\n";
    let config = config(npmrc, &[("TOKEN", "t1")], Some(says)).unwrap();
    assert_eq!(config.registry_of("plain"), "http://said.test/");
    assert_eq!(config.registry_of("@own/package"), "http://own.test/x/");
    assert_eq!(config.registry_of("@other/package"), "http://said.test/");
    assert_eq!(
        config.authorization("http://said.test/a/-/a-1.tgz"),
        Some("Bearer t1")
    );
    assert_eq!(config.authorization("http://own.test/x/a"), None);
}

#[test]
fn a_token_goes_only_below_its_own_place() {
    let npmrc = "registry=http://r.test/\n//r.test/deep:_auth=\"YTpi\"\n//r.test/:_authToken=t\n\
                 //r.test/:always-auth=true\n";
    let config = config(npmrc, &[], None).unwrap();
    assert_eq!(config.authorization("https://r.test/a"), Some("Bearer t"));
    assert_eq!(
        config.authorization("https://r.test/deep/a"),
        Some("Basic YTpi")
    );
    assert_eq!(
        config.authorization("https://r.test/deeper"),
        Some("Bearer t")
    );
    assert_eq!(config.authorization("https://r.test.evil/a"), None);
    assert_eq!(config.authorization("https://evil.test/?//r.test/"), None);
}

#[test]
fn variables_in_values_are_filled_in() {
    let variable = |name: &str| (name == "A").then(|| "1".into());
    assert_eq!(expand("${A}-${B}-${B?}-${A", &variable), "1-${B}--${A");
    assert_eq!(expand("plain", &variable), "plain");
}

#[test]
fn an_address_that_is_none_is_refused() {
    for registry in [
        "ftp://x.test/",
        "x.test",
        "http://u:p@x.test/",
        "http://x.test/?a",
        "http://x y/",
    ] {
        assert!(base(registry).is_err(), "{registry}");
    }
    assert!(NpmConfig::read(&|_| None, Some("not json")).is_err());
}
