//! GraphQL: what reads, what writes where it may, and everything that only looks like it.

use super::*;
use crate::intercept::scope::testing::Dice;
use box_api::egress::github::RefPattern;

fn scope() -> GithubScope {
    GithubScope {
        repositories: vec![Repository::parse("me/app").unwrap()],
        refs: vec![RefPattern::parse("box/web/*").unwrap()],
        ..GithubScope::default()
    }
}

fn passes(document: &str, variables: &str) -> bool {
    let document = serde_json::to_string(document).unwrap();
    let body = format!("{{\"query\":{document},\"variables\":{variables}}}");
    judge(&scope(), body.as_bytes()).is_ok()
}

#[test]
fn queries_read() {
    for document in [
        "{ viewer { login } }",
        "query { viewer { login } }",
        "query Q($a: Int = 3, $b: X = {c: [\"}\"]}) @d(e: \"{\") { a(b: $a) { ...F } } \
         fragment F on User @x { login }",
        "# mutation { deleteRepository }\nquery { a }",
        "query { a(b: \"mutation { x }\") }",
        "query { a(b: \"\"\"mutation { x } \" \"\" \"\"\") }",
        "query mutation { mutation: viewer { login } }",
        "query A { a } query B { b }",
        "query { a(n: -1.5e3, o: {x: true, y: null, z: ENUM}, l: [1, 2]) }",
    ] {
        assert!(passes(document, "null"), "{document}");
    }
    assert!(passes("{ a(b: \"\"\"x\"\"\") b(c: \"\") }", "null"));
    assert!(judge(&scope(), br#"{"query":"{a}","operationName":null}"#).is_ok());
}

#[test]
fn mutation_that_commits_to_its_own_branch_passes() {
    let inline = "mutation { createCommitOnBranch(input: {branch: {repositoryNameWithOwner: \
        \"Me/App\", branchName: \"box/web/x\"}, message: {headline: \"h\"}, \
        fileChanges: {additions: [{path: \"a\", contents: \"\"}]}}) { commit { url } } }";
    assert!(passes(inline, "null"));
    let with = "mutation ($i: CreateCommitOnBranchInput!) { c: createCommitOnBranch(input: $i) \
        { commit { url } } }";
    let input = |branch: &str| format!("{{\"i\":{{\"branch\":{branch},\"message\":{{}}}}}}");
    let good = r#"{"repositoryNameWithOwner":"me/app","branchName":"box/web/x"}"#;
    assert!(passes(with, &input(good)));
    for bad in [
        r#"{"repositoryNameWithOwner":"me/app","branchName":"main"}"#,
        r#"{"repositoryNameWithOwner":"me/other","branchName":"box/web/x"}"#,
        r#"{"repositoryNameWithOwner":"me/app","branchName":"refs/heads/box/web/x"}"#,
        r#"{"repositoryNameWithOwner":"me/app","branchName":"box/web/x","id":"abc"}"#,
        r#"{"id":"abc"}"#,
        r#"{"repositoryNameWithOwner":"me/app"}"#,
        r#"{"repositoryNameWithOwner":"me/app","branchName":["box/web/x"]}"#,
        "null",
    ] {
        assert!(!passes(with, &input(bad)), "{bad}");
    }
    assert!(!passes(with, "null"), "no variables");
    let twice = input(good).replace("\"branch\"", "\"branch\":{},\"branch\"");
    assert!(!passes(with, &twice), "a name twice");
    let default = "mutation ($b: X = {repositoryNameWithOwner: \"me/app\", branchName: \
        \"box/web/x\"}) { createCommitOnBranch(input: {branch: $b}) { x } }";
    assert!(!passes(default, "{}"), "a default is not looked at");
}

#[test]
fn whatever_else_could_write_does_not_pass() {
    let good = "createCommitOnBranch(input: {branch: {repositoryNameWithOwner: \"me/app\", \
        branchName: \"box/web/x\"}}) { x }";
    assert!(passes(&format!("mutation {{ {good} }}"), "null"));
    for document in [
        "mutation { deleteRef(input: {refId: \"x\"}) { x } }".to_owned(),
        format!("mutation {{ {good} deleteRef(input: {{refId: \"x\"}}) {{ x }} }}"),
        "mutation { createCommitOnBranch: deleteRef(input: {refId: \"x\"}) { x } }".to_owned(),
        "mutation { ...F } fragment F on Mutation { deleteRef(input: {refId: \"x\"}) { x } }"
            .to_owned(),
        "mutation { ... on Mutation { deleteRef(input: {refId: \"x\"}) { x } } }".to_owned(),
        format!("query {{ a }} mutation {{ deleteRef(input: {{refId: 1}}) {{ x }} }} # {good}"),
        "subscription { a }".to_owned(),
        "{ a } mutation { addStar(input: {}) { x } }".to_owned(),
        "# x\rmutation { addStar(input: {}) { x } }".to_owned(),
        "query { a(b: \"\"\" \\\"\"\") } mutation { addStar } # \"\"\" }".to_owned(),
        // Quotes beside those that end a block: graphql-ruby takes two of them into it.
        "query { a(b: \"\"\"a\"\"\"\"\"\") } mutation { addStar } # \"\"\" }".to_owned(),
        "query { a(b: \"\"\"a\"\"\"\") b(c: \"\"\"x\"\"\") }".to_owned(),
        "query { a(b: \"\"\"a\"\"\"\"\") }".to_owned(),
        "query { a(b: \"\"\"a\"\"\"\"\"\", c: \"\"\"\") }".to_owned(),
        "query { a(b: \"\"\"\"a\"\"\") }".to_owned(),
        "query { a(b: \"\"\"\"\"\") }".to_owned(),
        "query { a(b: \"\"\"x\\\" \"\"\") }".to_owned(),
        format!(
            "mutation {{ {} }}",
            good.replace("\"me/app\"", "\"me\\u002fapp\"")
        ),
        format!(
            "mutation {{ {} }}",
            good.replace("\"box/web/x\"", "\"\"\"box/web/x\"\"\"")
        ),
        "query A mutation B { x }".to_owned(),
        "query { a".to_owned(),
        "query { a ) }".to_owned(),
        "{ a } }".to_owned(),
        "extend type X { a }".to_owned(),
        "\"mutation\" { a }".to_owned(),
        "mutation { }".to_owned(),
        String::new(),
        "# only words".to_owned(),
        format!("{{ a{} }}", "{b".repeat(2000)),
    ] {
        assert!(!passes(&document, "null"), "{document}");
    }
    for body in [
        r#"[{"query":"{a}"}]"#,
        r#"{"id":"persisted"}"#,
        r#"{"query":"{a}","extensions":{"persistedQuery":{}}}"#,
        r#"{"query":"{a}","query":"mutation {x}"}"#,
        r#"{"query":["{a}"]}"#,
        "query={a}",
        "",
    ] {
        assert!(judge(&scope(), body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn random_documents_never_trip_the_parser_and_a_mutation_never_hides() {
    let words = [
        "query",
        "mutation",
        "fragment",
        "on",
        "F",
        "{",
        "}",
        "(",
        ")",
        ":",
        "$",
        "@",
        "\"",
        "#",
        "\"\"\"",
        "...",
        "\n",
        "a",
        "1",
        "\\",
        "[",
        "]",
        "createCommitOnBranch",
        "input",
        ",",
        "é",
        "\r",
        "subscription",
        "!",
        "=",
        "-",
        ".",
    ];
    let mut dice = Dice::new(3);
    let mut reading = 0;
    for _ in 0..60_000 {
        let said: Vec<&str> = (0..dice.below(24)).map(|_| *dice.pick(&words)).collect();
        let document = said.join(" ");
        let is_good = judge_document(&scope(), &document, &Json::Null).is_ok();
        let says = document.contains("mutation") || document.contains("subscription");
        if is_good && !says {
            reading += 1;
        }
        // Where there is neither a text nor a comment, the word stands for itself: it opens an
        // operation if it is the first of a definition.
        let first = document.split_whitespace().next().unwrap_or_default();
        if first == "mutation" || first == "subscription" {
            assert!(!is_good, "{document}");
        }
    }
    assert!(reading > 0, "some of it reads");
}
