//! Agents that repeat a conversation they take up after they have said that they did.

use super::{Stage, modes};
use crate::agents::profile::Repeating;
use crate::thread::state::{Asks, ThreadInput};
use box_api::thread::ThreadState as Shown;
use serde_json::json;

const NOTHING: [&str; 0] = [];

/// A thread whose agent was started again and has been asked, as number 6, to take up the
/// conversation for the prompt `more`, in row 5.
fn loading(repeating: Repeating) -> Stage {
    let mut stage = Stage::new(Asks::Person);
    stage.state.settings.repeating = repeating;
    stage.prompt("hi");
    stage.set_up();
    stage.reply(4, json!({"stopReason":"end_turn"}));
    stage.gone("the agent ended with code 0");
    stage.prompt("more");
    stage.step(ThreadInput::Started);
    let can = json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}});
    let sent = stage.reply(5, can);
    assert!(sent[0].starts_with("send session/load 6"), "{sent:?}");
    stage
}

/// What gemini-cli 0.61 says after its answer, of a conversation of one turn.
fn repeat(stage: &mut Stage) {
    for update in [
        json!({"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}),
        json!({"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"**Hm**"}}),
        json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}),
        json!({"sessionUpdate":"tool_call","toolCallId":"t1","status":"completed","title":"Shell",
            "content":[],"kind":"execute"}),
    ] {
        assert_eq!(stage.update(update), NOTHING, "the journal has it already");
    }
}

#[test]
fn what_is_repeated_after_the_load_was_answered_is_not_written_again() {
    let mut stage = loading(Repeating::AfterItAnswers);
    stage.reply(6, json!({"configOptions":modes("auto")}));
    repeat(&mut stage);
    // What it offers is no repetition.
    assert_eq!(
        stage.update(json!({"sessionUpdate":"available_commands_update","availableCommands":[]})),
        [
            r#"6 {"kind":"detail","raw":{"availableCommands":[],"sessionUpdate":"available_commands_update"}}"#
        ]
    );
    // The prompt waits.
    assert_eq!(
        stage.reply(7, json!({"configOptions":modes("default")})),
        [r#"7 {"kind":"mode","mode":"default"}"#]
    );
    assert_eq!(stage.state.shown(), Shown::Starting);
    assert_eq!(stage.state.deadline_ms(), Some(1500));
    stage.now_ms = 1400;
    repeat(&mut stage);
    assert_eq!(stage.state.deadline_ms(), Some(1900), "it was not quiet");
    stage.now_ms = 1899;
    assert_eq!(stage.step(ThreadInput::Tick), NOTHING);
    stage.now_ms = 1900;
    assert_eq!(
        stage.step(ThreadInput::Tick),
        [r#"send session/prompt 8 "more""#]
    );
    assert_eq!(
        stage.text("new"),
        [r#"8 {"kind":"text","text":"new"}"#],
        "from the prompt on all is new"
    );
}

#[test]
fn an_agent_seen_to_repeat_is_waited_for_though_nobody_said_it_would() {
    let mut stage = loading(Repeating::BeforeItAnswers);
    stage.reply(6, json!({"configOptions":modes("auto")}));
    repeat(&mut stage);
    let sent = stage.reply(7, json!({"configOptions":modes("default")}));
    assert_eq!(sent, [r#"6 {"kind":"mode","mode":"default"}"#]);
    repeat(&mut stage);
    stage.now_ms += 500;
    assert_eq!(
        stage.step(ThreadInput::Tick),
        [r#"send session/prompt 8 "more""#]
    );
}

#[test]
fn an_agent_that_never_gets_quiet_gets_its_prompt_all_the_same() {
    let mut stage = loading(Repeating::AfterItAnswers);
    stage.reply(6, json!({"configOptions":modes("auto")}));
    stage.reply(7, json!({"configOptions":modes("default")}));
    let mut sent = Vec::new();
    for _ in 0..200 {
        stage.now_ms += 400;
        sent.extend(stage.text("again"));
        sent.extend(stage.step(ThreadInput::Tick));
        if !sent.is_empty() {
            break;
        }
    }
    assert_eq!(sent, [r#"send session/prompt 8 "more""#]);
    assert_eq!(stage.now_ms, 61_000, "the time of one step of the set-up");
}

#[test]
fn a_prompt_cancelled_while_the_agent_repeats_is_never_sent_and_the_next_one_is() {
    let mut stage = loading(Repeating::AfterItAnswers);
    stage.reply(6, json!({"configOptions":modes("auto")}));
    stage.reply(7, json!({"configOptions":modes("default")}));
    repeat(&mut stage);
    let ended = stage.cancel();
    assert_eq!(
        ended,
        [r#"7 {"kind":"turn_ended","outcome":"cancelled","note":null}"#]
    );
    assert_eq!(
        stage.prompt("other"),
        [r#"8 {"kind":"prompt","text":"other"}"#]
    );
    stage.now_ms += 500;
    assert_eq!(
        stage.step(ThreadInput::Tick),
        [r#"send session/prompt 8 "other""#]
    );
}

#[test]
fn a_host_that_was_away_waits_anew_for_quiet() {
    let mut stage = loading(Repeating::AfterItAnswers);
    stage.reply(6, json!({"configOptions":modes("auto")}));
    stage.reply(7, json!({"configOptions":modes("default")}));
    stage.now_ms += 3_600_000;
    assert_eq!(stage.step(ThreadInput::Reattached), NOTHING);
    repeat(&mut stage);
    stage.now_ms += 500;
    assert_eq!(
        stage.step(ThreadInput::Tick),
        [r#"send session/prompt 8 "more""#]
    );
}

#[test]
fn who_never_pauses_is_heard_again_after_a_while() {
    // Nothing was asked meanwhile, so that no prompt ends it either.
    let mut stage = loading(Repeating::BeforeItAnswers);
    stage.cancel();
    stage.reply(6, json!({"configOptions":modes("auto")}));
    stage.reply(7, json!({"configOptions":modes("default")}));
    for step in 1..75 {
        stage.now_ms = step * 400;
        assert_eq!(stage.text("again"), NOTHING, "{} ms", stage.now_ms);
    }
    stage.now_ms = 31_000;
    let heard = stage.text("again");
    assert!(!heard.is_empty(), "it could act unseen for ever");
}
