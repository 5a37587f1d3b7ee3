//! Somebody logs in inside a box: with a script as a program does it byte for byte, and with the
//! real Claude Code, which renews what it finds.

use super::host::TestHost;
use super::leaks;
use box_api::BoxName;
use box_api::control::{Request, ThreadOpen};
use std::fs;

const CLAUDE: &str =
    "/opt/box/agents/claude/node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude";
/// RFC 7636, appendix B.
const LOGIN: &str = r#"
set -e
back=$(curl -sS -o /dev/null -w '%{redirect_url}' 'https://platform.claude.com/oauth/authorize?response_type=code&client_id=c&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&redirect_uri=https%3A%2F%2Fx.test%2Fcb&state=s')
code=$(printf %s "$back" | sed 's/.*code=//; s/&.*//')
curl -sS --compressed https://platform.claude.com/v1/oauth/token -H 'content-type: application/json' \
  --data "{\"grant_type\":\"authorization_code\",\"code\":\"$code\",\"client_id\":\"c\",\"redirect_uri\":\"https://x.test/cb\",\"code_verifier\":\"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk\",\"state\":\"s\"}" > "$HOME/login.json"
python3 - <<'END'
import json, os
home = os.environ["HOME"]
login = json.load(open(home + "/login.json"))
os.makedirs(home + "/.claude", exist_ok=True)
kept = {"claudeAiOauth": {"accessToken": login["access_token"], "refreshToken": login["refresh_token"],
    "expiresAt": 1000, "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}}
json.dump(kept, open(home + "/.claude/.credentials.json", "w"))
END
"#;
const WHO: &str = r#"
token=$(python3 -c 'import json, os; print(json.load(open(os.environ["HOME"] + "/login.json"))["access_token"])')
curl -sS --retry 60 --retry-delay 1 --retry-all-errors -o /dev/null -w '%{http_code}' https://api.anthropic.com/api/oauth/profile -H "authorization: Bearer $token"
"#;

fn listed(host: &TestHost) -> serde_json::Value {
    serde_json::from_str(&host.ok(&["credential", "list", "--json"])).unwrap()
}

/// The way out of this test's host.
fn way_out() -> u32 {
    let own = fs::read_link("/proc/thread-self/ns/net").unwrap();
    let is_it = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("egress\0--host-uid")
            && fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|net| net == own)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(is_it).expect("there is a way out")
}

#[test]
fn login_made_inside_works_without_a_token_in_the_box_and_ends_with_it() {
    let host = TestHost::new();
    let vendors = host.rig.vendors();
    host.ok(&["new", "one"]);
    // An agent needs an account, and takes the one that was made in its box.
    let open = || {
        host.control().ask(&Request::ThreadOpen(ThreadOpen {
            name: BoxName::parse("one").unwrap(),
            agent: "claude".to_owned(),
            allow_all: false,
        }))
    };
    assert_eq!(open().unwrap_err().slug, "no-credential");
    host.shell("one", LOGIN).assert_code(0);
    assert!(open().is_ok());
    assert_eq!(host.shell("one", WHO).out, "200");
    let issued = vendors.issued();
    assert_eq!(issued.len(), 2);
    let kept = host
        .shell("one", "cat ~/login.json ~/.claude/.credentials.json")
        .out;
    assert!(kept.contains("sk-ant-ort01-"), "{kept}");
    for secret in &issued {
        assert!(!kept.contains(secret));
        super::credential::assert_nowhere_in_box(&host, "one", secret);
    }
    let list = listed(&host);
    assert_eq!(list[0]["box"], "one");
    assert_eq!(
        (&list[0]["kind"], &list[0]["lost"]),
        (&"claude".into(), &false.into())
    );

    // A stop and a start in between change nothing.
    host.ok(&["stop", "one"]);
    host.ok(&["start", "one"]);
    assert_eq!(host.shell("one", WHO).out, "200");

    // A clone has the files and nothing they are worth.
    host.ok(&["new", "two", "--from", "one"]);
    assert_eq!(host.shell("two", WHO).out, "401");

    // The way out is killed. Where secrets stay in memory the login is lost, and the program hears
    // from the vendor, at once, what it hears of any token that is good no more.
    assert_eq!(list[0]["is_sealed"], false);
    leaks::kill(way_out());
    assert_eq!(host.shell("one", WHO).out, "401");
    assert_eq!(listed(&host)[0]["lost"], true);
    assert!(
        host.ok(&["credential", "list"])
            .contains("lost, log in again")
    );

    host.ok(&["rm", "one", "--force"]);
    assert_eq!(listed(&host).as_array().unwrap().len(), 0);
    let page = host.ok(&["set", "two", "logins=plain"]);
    assert!(!page.contains("sk-ant"));
    host.shell("two", LOGIN).assert_code(0);
    let plain = host.shell("two", "cat ~/login.json").out;
    // Control of what is said above: this is how a token in a box looks.
    assert!(
        vendors.issued().iter().any(|secret| plain.contains(secret)),
        "{plain}"
    );
    assert!(host.ok(&["info", "two"]).contains("plain"));
    assert!(
        host.ok(&["policy", "show", "two"])
            .contains("logins made inside: plain")
    );
}

#[test]
fn real_claude_renews_its_login_and_never_sees_a_token() {
    let host = TestHost::new();
    host.pack("claude");
    let vendors = host.rig.vendors();
    host.ok(&["new", "one"]);
    host.shell("one", LOGIN).assert_code(0);
    let before = vendors.issued();
    // What it says to the vendor's model, which is none here, is not the matter.
    let ask = format!("CLAUDE_CODE_MAX_RETRIES=0 timeout 60 {CLAUDE} -p hello < /dev/null");
    let said = host.shell("one", &ask);
    let honoured = vendors.honoured();
    let refreshed = honoured
        .iter()
        .find(|line| line.contains("/v1/oauth/token "));
    assert!(
        refreshed.is_some_and(|line| line.ends_with(&before[1])),
        "{said} {honoured:?}"
    );
    let fresh: Vec<String> = vendors.issued().split_off(before.len());
    assert_eq!(fresh.len(), 2, "renewed once");
    let used = honoured
        .iter()
        .any(|line| line.starts_with("api.anthropic.com/") && line.ends_with(&fresh[0]));
    assert!(used, "{honoured:?}");
    assert_eq!(vendors.refused(), Vec::<String>::new());
    for secret in vendors.issued() {
        super::credential::assert_nowhere_in_box(&host, "one", &secret);
    }
    let kept = host.shell("one", "cat ~/.claude/.credentials.json").out;
    assert!(kept.contains("sk-ant-oat01-"), "{kept}");
}
