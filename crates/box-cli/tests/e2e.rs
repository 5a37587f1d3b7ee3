//! End to end: the real `box`, real boxes, the real Claude Code, on an internet of the test's own.
//!
//! Each test is a process of its own (nextest) with its own host, data folder and internet. The
//! default image and the agent's pack are made once a machine, by the product itself, and shared
//! by hard links ([`e2e::seed`]).
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test starts programs, and one that cannot go on fails"
)]

mod e2e {
    mod agents;
    mod alone;
    mod archive;
    mod asked;
    mod budget;
    mod clients;
    mod control;
    mod credential;
    mod decisions;
    mod drill;
    mod expose;
    mod files;
    mod here;
    mod host;
    mod hostile;
    mod image;
    mod leaks;
    mod limits;
    mod logins;
    mod lost;
    mod nested;
    mod net;
    mod other_agents;
    mod own_agent;
    mod page;
    mod policy;
    mod pool;
    mod processes;
    mod program;
    mod push;
    mod recorded;
    mod rootless;
    mod seed;
    mod terminal;
    mod threads;
    mod traffic;
    mod travel;
    mod turn;
    mod undo;
    mod undo_turn;
    mod uninstall;
    mod ways_in;
    mod wrong;
}
