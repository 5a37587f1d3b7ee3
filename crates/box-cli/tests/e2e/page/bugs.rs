//! Bugs that come back in every page of this kind, each as a test of its own, and a hostile page in
//! the same browser. The first and the eighth are the restart and the long thread beside this file.

use super::{asking, link, play};
use crate::e2e::host::{Start, TestHost};

#[track_caller]
fn absent(bug: &str) {
    let host = TestHost::with(Start::Bare);
    play(&host, "bugs.mjs", &[bug, &link(&host)]);
}

#[test]
fn bug_02_a_dead_socket_is_found_out_and_nothing_is_missed() {
    absent("bug_02");
}

#[test]
fn bug_03_a_reader_stays_where_they_are_while_text_comes() {
    absent("bug_03");
}

#[test]
fn bug_04_enter_on_a_phone_is_a_new_line() {
    absent("bug_04");
}

#[test]
fn bug_05_enter_of_an_input_method_sends_nothing() {
    absent("bug_05");
}

#[test]
fn bug_06_a_keyboard_leaves_the_composer_in_sight() {
    absent("bug_06");
}

#[test]
fn bug_07_a_file_that_is_gone_is_never_html_and_keeps_the_draft() {
    absent("bug_07");
}

#[test]
fn bug_09_no_word_of_another_thread_is_shown() {
    absent("bug_09");
}

#[test]
fn bug_10_a_terminal_works_by_touch_and_harms_nobody() {
    let host = TestHost::new();
    host.ok(&["new", "web"]);
    play(&host, "bugs.mjs", &["bug_10", &link(&host)]);
}

#[test]
fn bug_11_text_of_an_agent_runs_and_fetches_nothing() {
    absent("bug_11");
}

#[test]
fn bug_13_every_screen_fits_a_phone() {
    absent("bug_13");
}

#[test]
fn bug_14_without_an_account_there_is_an_agent_that_works() {
    absent("bug_14");
}

#[test]
fn a_hostile_page_in_the_same_browser_gets_nothing() {
    let host = TestHost::with(Start::Bare);
    play(&host, "attacks.mjs", &[&link(&host)]);
}

#[test]
fn a_thread_is_read_without_any_script() {
    let host = TestHost::new();
    let thread = asking(&host);
    play(&host, "bugs.mjs", &["plain", &link(&host), &thread]);
}

#[test]
fn ten_tabs_a_slow_phone_and_a_lost_network_see_one_card() {
    let host = TestHost::new();
    let thread = asking(&host);
    play(&host, "many.mjs", &[&link(&host), &link(&host), &thread]);
}
