//! What settings files are accepted, and what is said of the others.

use super::*;

fn parse(text: &str) -> Result<Settings, SettingsError> {
    Settings::parse(Path::new("/etc/box/config.toml"), text)
}

fn refusal(text: &str) -> (String, Option<String>) {
    let error = parse(text).unwrap_err();
    (error.to_string(), error.hint())
}

#[test]
fn no_file_means_the_defaults() {
    let settings = Settings::load(Path::new("/nonexistent/box/config.toml")).unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!(settings.defaults(), Defaults::default());
}

#[test]
fn each_value_remembers_where_it_came_from() {
    let settings = parse(
        "[egress]\nresolvers = [\"192.0.2.53\", \"[2001:db8::53]:5353\"]\n\
         extra_roots = \"/etc/ssl/company.pem\"\n\
         [limits]\ncpus = 0.5\nmemory = \"8GiB\"\npids = 100\n\
         [net]\npreset = \"locked\"\nallow = [\"*.example.com\"]\n[box]\nprofile = \"root\"\n",
    )
    .unwrap();
    let file = Origin::File("/etc/box/config.toml".into());
    let resolvers = ["192.0.2.53:53", "[2001:db8::53]:5353"].map(|text| text.parse().unwrap());
    assert_eq!(
        settings.resolvers,
        Setting {
            value: resolvers.to_vec(),
            origin: file.clone()
        }
    );
    assert_eq!(
        settings.limits.cpu_milli,
        Setting {
            value: 500,
            origin: file.clone()
        }
    );
    assert_eq!(settings.limits.memory_bytes.value, 8 << 30);
    assert_eq!(settings.limits.disk_bytes.origin, Origin::Default);
    assert_eq!(
        settings.profile,
        Setting {
            value: Profile::Root,
            origin: file
        }
    );
    assert_eq!(settings.defaults().net, NetPreset::Locked);
}

#[test]
fn an_unknown_key_is_refused_by_name() {
    let (text, hint) = refusal("[egress]\nresolver = []\n");
    assert_eq!(
        text,
        "the settings `/etc/box/config.toml` have an unknown key `egress.resolver`"
    );
    assert_eq!(hint.as_deref(), Some("did you mean `egress.resolvers`?"));
    assert!(
        refusal("profile = \"root\"\n")
            .0
            .ends_with("unknown key `profile`")
    );
    assert!(refusal("[egres]\n").0.ends_with("unknown key `egres`"));
    let (_, hint) = refusal("[machines]\ncolour = 1\n");
    assert!(hint.unwrap().starts_with("keys are `egress.resolvers`"));
}

#[test]
fn a_value_that_cannot_be_is_refused_with_its_key() {
    for (text, why) in [
        (
            "[limits]\nmemory = \"4 apples\"\n",
            "`limits.memory` a value it cannot have: it is not a size",
        ),
        (
            "[limits]\nmemory = 1\n",
            "it is not a size of at least 16777216 bytes",
        ),
        ("[limits]\ncpus = -1\n", "it is not between 0.01 and 4096"),
        ("[limits]\ncpus = nan\n", "it is not between 0.01 and 4096"),
        ("[limits]\npids = 1.5\n", "it is float, not a whole number"),
        (
            "[net]\npreset = \"wide\"\n",
            "`wide` is none of `balanced`, `open`, `locked`",
        ),
        ("[net]\nallow = [\"https://x.example\"]\n", "is a URL"),
        (
            "[egress]\nextra_roots = \"roots.pem\"\n",
            "the path is not absolute",
        ),
        (
            "[egress]\nresolvers = \"192.0.2.1\"\n",
            "it is string, not a list",
        ),
    ] {
        let (text, _) = refusal(text);
        assert!(text.contains(why), "{text}");
    }
    assert!(matches!(parse("[box\n"), Err(SettingsError::Toml { .. })));
}

#[test]
fn the_store_has_a_size_and_keeps_some_space_free() {
    let settings = parse("[store]\nsize = \"50GiB\"\nreserve = \"2GiB\"\n").unwrap();
    assert_eq!(settings.store_size_bytes.value, Some(50 << 30));
    assert_eq!(settings.store_reserve_bytes.value, Some(2 << 30));
    let (text, _) = refusal("[store]\nsize = \"1MiB\"\n");
    assert!(text.contains("`store.size`"), "{text}");
}
