//! Many pushes by chance, judged twice: by the judge, and by rules written out again beside it.

use super::held::unzipped;
use super::push::{FLUSH, line};
use super::testing::Dice;
use super::*;
use box_api::egress::github::RefPattern;
use std::io::Write as _;

const NAMES: [&str; 14] = [
    "refs/heads/main",
    "refs/heads/box/web/a",
    "refs/heads/box/web/b",
    "refs/heads/box/web/c/d",
    "refs/heads/box/web",
    "refs/heads/box/webb/a",
    "refs/heads/box/web/../main",
    "refs/heads/box/web/x.lock",
    "refs/tags/v1",
    "refs/tags/box/web/a",
    "refs/notes/commits",
    "refs/pull/1/head",
    "HEAD",
    "refs/heads/dev",
];

fn oid(digit: usize) -> String {
    format!("{digit}").repeat(40)
}

/// Rules in words: what may be done to a ref at all, not looking at commits.
fn may(scope: &GithubScope, name: &str, old: usize, new: usize) -> bool {
    let is_tag = name.starts_with("refs/tags/");
    let is_own = [
        "refs/heads/box/web/a",
        "refs/heads/box/web/b",
        "refs/heads/box/web/c/d",
    ]
    .contains(&name);
    let is_dev = name == "refs/heads/dev" && scope.refs.len() == 2;
    let named = if is_tag { scope.tags } else { is_own || is_dev };
    let loses = new == 0 || (old != 0 && is_tag);
    named && (!loses || scope.force)
}

#[test]
fn pushes_by_chance_are_judged_as_the_rules_say() {
    let mut dice = Dice::new(4);
    let repository = Repository::parse("me/app").unwrap();
    let (mut let_through, mut stopped) = (0, 0);
    for _ in 0..20_000 {
        let mut refs = vec![RefPattern::parse("box/web/*").unwrap()];
        if dice.below(2) == 0 {
            refs.push(RefPattern::parse("dev").unwrap());
        }
        let scope = GithubScope {
            repositories: vec![repository.clone()],
            refs,
            force: dice.below(2) == 0,
            tags: dice.below(2) == 0,
            ..GithubScope::default()
        };
        let mut bytes = Vec::new();
        let (mut all_may, mut names) = (true, Vec::new());
        for _ in 0..=dice.below(3) {
            let name = *dice.pick(&NAMES);
            let (old, new) = (dice.below(3), dice.below(3));
            if (old, new) == (0, 0) || names.contains(&name) {
                continue;
            }
            names.push(name);
            all_may &= may(&scope, name, old, new);
            bytes.extend(line(format!("{} {} {name}", oid(old), oid(new)).as_bytes()));
        }
        bytes.extend_from_slice(FLUSH);
        let push = push::read(&bytes).unwrap().unwrap();
        assert_eq!(push.commands.len(), names.len());
        let (reasons, _) = judge_commands(&scope, &repository, &push);
        let passes = reasons.iter().all(|(_, why)| why.is_none());
        assert_eq!(passes, all_may, "{scope:?} {push:?}");
        if passes {
            let_through += 1;
        } else {
            stopped += 1;
        }
        let other = Repository::parse("me/other").unwrap();
        let (reasons, _) = judge_commands(&scope, &other, &push);
        assert!(
            reasons.iter().all(|(_, why)| why.is_some()),
            "another repository"
        );
    }
    assert!(
        let_through > 500 && stopped > 500,
        "{let_through} {stopped}"
    );
}

#[test]
fn gzip_is_one_member_and_nothing_behind_it() {
    let zip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(unzipped(&zip(b"0000"), 100), Ok(b"0000".to_vec()));
    assert!(unzipped(&[zip(b"0000"), zip(b"x")].concat(), 100).is_err());
    assert!(unzipped(&[zip(b"0000"), b"x".to_vec()].concat(), 100).is_err());
    assert!(unzipped(b"0000", 100).is_err());
    assert!(matches!(
        unzipped(&zip(&[0; 101]), 100),
        Err(Why::TooLong { .. })
    ));
}
