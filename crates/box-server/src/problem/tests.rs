//! The exact words of what can go wrong.

use super::*;
use box_api::BoxName;
use box_core::agents;

fn name(text: &str) -> BoxName {
    BoxName::parse(text).unwrap()
}

/// As the terminal shows it, with the exit code.
fn shown(problem: &Problem) -> String {
    let cause = problem
        .cause
        .as_ref()
        .map(|cause| format!(" | cause: {cause}"));
    let hint = problem.hint.as_ref().map(|hint| format!(" | hint: {hint}"));
    format!(
        "{} [{}] {}{}{}",
        problem.kind.exit_code(),
        problem.slug,
        problem.title,
        cause.unwrap_or_default(),
        hint.unwrap_or_default()
    )
}

fn unknown_box(near: Option<&str>, any: Any) -> Problem {
    find(FindError::Unknown {
        name: name("dem"),
        near: near.map(name),
        any,
    })
}

fn no_image() -> RuntimeError {
    RuntimeError::Refused {
        why: "there is no suite `trixy`".to_owned(),
        hint: Some("suites are `bookworm`, `trixie`, …".to_owned()),
    }
}

#[test]
fn what_can_go_wrong_reads_as_it_should() {
    let unknown_agent = agents::find("cloude").unwrap_err();
    let image = CreateError::Image {
        image: "debian:trixy".to_owned(),
        source: no_image(),
    };
    let shape = SecretError::Shape {
        expected: vec!["`sk-ant-oat…`".to_owned()],
    };
    let secret = CredentialError::Secret {
        kind: "claude".to_owned(),
        source: shape,
    };
    let broken = RuntimeError::engine("mount the root", "no space left on device");
    let table = [
        (
            unknown_box(Some("demo"), Any::Some),
            "1 [box-not-found] there is no box `dem` | hint: did you mean `demo`?",
        ),
        (
            unknown_box(None, Any::Some),
            "1 [box-not-found] there is no box `dem` | hint: `box list` shows your boxes",
        ),
        (
            unknown_box(None, Any::None),
            "1 [box-not-found] there is no box `dem` | hint: make it with `box new dem`",
        ),
        (
            create(CreateError::NameTaken(name("demo"))),
            "1 [name-taken] there is a box `demo` already | hint: choose another name, or remove \
             that box with `box rm demo`",
        ),
        (
            create(image),
            "1 [image-not-ready] could not get the image `debian:trixy` ready | cause: there is \
             no suite `trixy` | hint: suites are `bookworm`, `trixie`, …",
        ),
        (
            start(StartError::Engine {
                name: name("demo"),
                source: broken,
            }),
            "125 [not-started] could not start box `demo` | cause: could not mount the root: no \
             space left on device",
        ),
        (
            credential(secret),
            "2 [bad-secret] could not use the secret for `claude` | cause: it does not begin as \
             one does: `sk-ant-oat…` | hint: paste the whole token, and only it",
        ),
        (
            other_protocol(7),
            "125 [other-protocol] this host speaks protocol 1, the client 7 | hint: `box up` \
             replaces the host; boxes and turns go on",
        ),
    ];
    for (problem, expected) in table {
        assert_eq!(shown(&problem), expected);
    }
    let agent = shown(&agent(unknown_agent));
    assert!(
        agent.starts_with(
            "2 [unknown-agent] there is no agent `cloude` | hint: did you mean `claude`?"
        ),
        "{agent}"
    );
}

#[test]
fn a_name_that_is_none_is_told_by_its_rule() {
    let request = r#"{"verb":"info","name":"../etc"}"#;
    let error = serde_json::from_str::<box_api::control::Request>(request).unwrap_err();
    let hello = Hello {
        build: "test".to_owned(),
        protocol: PROTOCOL,
    };
    assert_eq!(
        shown(&malformed(&hello, &error)),
        "2 [bad-request] the host does not understand the request | cause: a box name starts with \
         a letter a-z, then letters, digits and `-`, 63 at most"
    );
}

#[test]
fn no_text_ends_with_a_full_stop_or_begins_with_a_capital() {
    for problem in [
        foreign_user(),
        not_settled(),
        client_gone(),
        gone(),
        thread_gone(),
        host_ends(),
        unknown_box(None, Any::None),
    ] {
        assert!(!problem.title.ends_with('.'), "{}", problem.title);
        assert!(
            problem.title.starts_with(|c: char| c.is_lowercase()),
            "{}",
            problem.title
        );
    }
}
