//! Profiles a person writes: what is refused, where, and what they open.

use super::*;

const GOOD: &str = r#"name = "mine"
title = "Mine"
command = ["my-agent", "--acp"]
hosts = ["models.example.org"]

[env]
MINE = "1"

[credential]
kind = "mine"
hosts = ["api.example.org"]

[[credential.shapes]]
prefix = "mine-"
variable = "MINE_TOKEN"
header = "authorization"
scheme = "Bearer"

[[files]]
path = ".mine/config"
content = "x"
"#;

fn read_text(text: &str) -> Result<AgentProfile, String> {
    read_own(Path::new("mine.toml"), text).map_err(|fault| fault.to_string())
}

#[track_caller]
fn refused(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    read_text(&GOOD.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn a_profile_says_little_and_what_it_opens_is_told() {
    let least = read_text("name = \"mine\"\ntitle = \"M\"\ncommand = [\"/usr/bin/x\"]\n").unwrap();
    assert_eq!(least.modes.ask, "default");
    assert_eq!(least.pack, PackKind::InBox);
    let profile = read_text(GOOD).unwrap();
    let opens = opens(&profile);
    assert_eq!(opens.command, ["my-agent", "--acp"]);
    assert_eq!(opens.hosts, ["models.example.org"]);
    assert_eq!(opens.variables, ["MINE"]);
    assert_eq!(opens.files, [".mine/config"]);
    let credential = opens.credential.unwrap();
    assert_eq!(credential.kind, "mine");
    assert_eq!(credential.hosts, ["api.example.org"]);
    assert_eq!(credential.variables, ["MINE_TOKEN"]);
    // Of an account there is already all is said by its kind.
    let of_openai = GOOD[..GOOD.find("hosts = [\"api").unwrap()].replace("\"mine\"\nhosts", "");
    let of_openai = of_openai.replace("kind = \"mine\"", "kind = \"openai\"");
    let opens = super::opens(&read_text(&of_openai).unwrap());
    assert_eq!(opens.credential.unwrap().hosts, ["api.openai.com"]);
}

#[test]
fn no_host_variable_or_name_of_another_credential_is_claimed() {
    for (host, whose) in [
        ("api.anthropic.com", "the credential `claude`"),
        ("github.com", "the credential `github`"),
        ("auth.openai.com", "the credential `openai`"),
        ("platform.claude.com", "a login"),
    ] {
        assert_eq!(
            refused("api.example.org", host),
            format!("`mine.toml`, line 11: the host `{host}` belongs to {whose}")
        );
    }
    assert_eq!(
        refused("MINE_TOKEN", "OPENAI_API_KEY"),
        "`mine.toml`, line 15: the variable `OPENAI_API_KEY` is the one of `openai`"
    );
    assert!(refused("MINE_TOKEN", "LD_PRELOAD").contains("line 15"));
    assert!(refused("kind = \"mine\"", "kind = \"openai\"").contains("already"));
    assert!(refused("kind = \"mine\"", "kind = \"codex\"").contains("already"));
    assert!(refused("kind = \"mine\"", "kind = \"generic\"").contains("no account"));
    let claims = vec![("api.example.org".to_owned(), "generic".to_owned())];
    let named = Text {
        file: Path::new("mine.toml"),
        text: GOOD,
    };
    let fault = read(&named, &claims).unwrap_err().to_string();
    assert_eq!(
        fault,
        "`mine.toml`, line 11: the host `api.example.org` belongs to the credential `generic`"
    );
    // The control: nobody else's.
    assert!(read(&named, &Claims::new()).is_ok());
}

#[test]
fn an_error_names_file_and_line() {
    assert_eq!(
        refused("hosts = [\"models", "colour = 1\nhosts = [\"models"),
        "`mine.toml`, line 4: unknown field `colour`, expected one of `name`, `title`, `pack`, \
         `command`, `env`, `same_as`, `hosts`, `login`, `login_inside`, `modes`, `authenticate`, \
         `credential`, `context`, `files`, `session_meta`, `quirks`"
    );
    assert!(refused("title = \"Mine\"", "title = ").contains("line 2"));
    assert_eq!(
        refused(".mine/config", "../config"),
        "`mine.toml`, line 20: `../config` is no good `files`"
    );
    assert!(refused("models.example.org", "models").contains("line 4"));
    assert!(refused("name = \"mine\"", "name = \"claude\"").contains("line 1"));
    assert!(refused("title", "pack = \"locked\"\ntitle").contains("line"));
    assert!(refused("\"my-agent\"", "\"../my-agent\"").contains("line 3"));
    let long = format!("{GOOD}# {}", "x".repeat(PROFILE_BYTES_MAX));
    assert!(read_text(&long).unwrap_err().contains("longer than"));
}

#[test]
fn a_profile_that_is_taken_up_is_an_agent_with_an_account_until_it_is_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("config.toml");
    write(&folder.path().join("agents.d/mine.toml"), GOOD).unwrap();
    std::fs::write(folder.path().join("agents.d/bad.toml"), "name = 1\n").unwrap();
    std::fs::write(folder.path().join("agents.d/other.toml"), GOOD).unwrap();
    std::fs::write(folder.path().join("agents.d/notes.txt"), "").unwrap();
    load(&settings);
    assert_eq!(crate::agents::find("mine").unwrap().title, "Mine");
    let hint = crate::agents::find("mien").unwrap_err().hint();
    assert!(hint.contains("did you mean `mine`?"), "{hint}");
    let kind = credentials::kinds::find("mine").unwrap();
    assert_eq!(kind.hosts, ["api.example.org"]);
    let faults: Vec<String> = added::faults().iter().map(Fault::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("bad.toml`, line 1"), "{faults:?}");
    assert!(faults[1].contains("belongs into `mine.toml`"), "{faults:?}");
    // Another agent may share its account, and not claim it.
    let other = GOOD.replace("name = \"mine\"", "name = \"other\"");
    assert!(read_text(&other).unwrap_err().contains("already"));
    assert!(read_text(GOOD).is_ok(), "it is itself");

    added::take("mine");
    assert!(crate::agents::find("mine").is_err());
    assert!(credentials::kinds::find("mine").is_none());
}

#[test]
fn an_entry_of_the_acp_registry_becomes_a_profile() {
    let entry = r#"{"id":"some-agent","name":"Some \"Agent\"","version":"1.2.3",
        "distribution":{"npx":{"package":"@some/agent@1.2.3","args":["--acp"],
        "env":{"SOME":"1"}}}}"#;
    let file = Path::new("agent.json");
    let text = acp_registry::profile_of(file, entry.to_owned()).unwrap();
    let profile = read_own(file, &text).unwrap();
    assert_eq!(profile.name, "some-agent");
    assert_eq!(profile.title, "Some \"Agent\"");
    assert_eq!(
        profile.command,
        ["npx", "--yes", "@some/agent@1.2.3", "--acp"]
    );
    assert_eq!(profile.env["SOME"], "1");
    let refused = |json: &str| {
        let fault = acp_registry::profile_of(file, json.to_owned()).unwrap_err();
        fault.to_string()
    };
    let archive = r#"{"id":"a","name":"A","distribution":{"binary":{"linux-x86_64":{}}}}"#;
    assert!(refused(archive).contains("comes as an archive"));
    assert!(refused("{\n\"id\": 1}").contains("`agent.json`, line 2"));
    let newline = r#"{"id":"a","name":"A\nB","distribution":{"npx":{"package":"p"}}}"#;
    assert!(refused(newline).contains("control characters"));
    // What is no JSON is taken as it is.
    let toml = acp_registry::profile_of(Path::new("x.toml"), GOOD.to_owned());
    assert_eq!(toml.unwrap(), GOOD);
}
