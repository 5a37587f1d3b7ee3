//! What a person does with the page day by day, each flow as a scenario of `ui/e2e`.

use super::super::undo_turn::{finish, host_with_store};
use super::{Start, TestHost, link, play};

#[test]
fn a_phone_writes_with_files_attachments_a_queue_and_a_way_back() {
    // Where copies cost next to nothing: turns have restore points there.
    let host = host_with_store();
    play(&host, "composer.mjs", &[&link(&host)]);
    finish(host);
}

#[test]
fn boxes_are_frozen_snapshotted_cloned_renamed_removed_and_taken_back() {
    let host = TestHost::new();
    play(&host, "boxes.mjs", &[&link(&host)]);
}

#[test]
fn a_thread_shows_pictures_what_was_cut_what_hides_and_what_was_found() {
    let host = TestHost::with(Start::Bare);
    play(&host, "thread-parts.mjs", &[&link(&host)]);
}

#[test]
fn a_dead_socket_a_new_build_a_gone_file_and_an_enter_too_many_lose_nothing() {
    let host = TestHost::with(Start::Bare);
    play(&host, "survives.mjs", &[&link(&host)]);
}
