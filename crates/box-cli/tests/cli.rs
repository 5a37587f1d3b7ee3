//! The `box` command against a host of the test's own: what is asked of it, what a person and a
//! program read, and how it ends. Needs no root and no engine.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test starts programs, and one that cannot go on fails"
)]

mod cli {
    mod agents;
    mod attach;
    mod decisions;
    mod doctor;
    mod exec;
    mod fake_host;
    mod files;
    mod greeting;
    mod images;
    mod install;
    mod limits;
    mod person;
    mod print;
    mod program;
    mod run;
    mod secret;
    mod travel;
    mod undo;
    mod up;
    mod ways_in;
    mod wrong;
}
