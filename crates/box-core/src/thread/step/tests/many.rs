//! Options, queue and steering, forks, work in the background: exactly what follows.

use super::Stage;
use crate::thread::acts::{Act, ActFailure};
use crate::thread::state::{Asks, QueueChange, ThreadInput};
use box_api::thread::{ChosenOption, ThreadState as Shown};
use serde_json::{Value, json};

fn options(mode: &str, model: &str) -> Value {
    json!([{"id":"mode","category":"mode","type":"select","currentValue":mode,"options":[
            {"value":"auto"},{"value":"default"},{"value":"plan"}]},
        {"id":"model","category":"model","type":"select","currentValue":model,"options":[
            {"value":"opus"},{"value":"haiku"}]}])
}

fn chosen(option: &str, value: &str) -> ChosenOption {
    ChosenOption {
        option: option.into(),
        value: value.into(),
    }
}

fn choose(option: &str, value: &str) -> ThreadInput {
    ThreadInput::Choose {
        chosen: vec![chosen(option, value)],
    }
}

/// An agent that steers, forks and offers a model; idle after its first turn, numbers from 5 on.
fn able() -> Stage {
    let mut stage = Stage::new(Asks::Person);
    stage.prompt("hi");
    stage.step(ThreadInput::Started);
    stage.reply(
        1,
        json!({"protocolVersion":1,"_meta":{"steering":{"supported":true}},
            "agentCapabilities":{"loadSession":true,"sessionCapabilities":{"fork":{}}}}),
    );
    stage.reply(
        2,
        json!({"sessionId":"s1","configOptions":options("auto","opus")}),
    );
    stage.reply(3, json!({"configOptions":options("default","opus")}));
    stage.reply(4, json!({"stopReason":"end_turn"}));
    stage
}

fn steer(text: &str) -> ThreadInput {
    ThreadInput::Steer { text: text.into() }
}

fn sdk(message: Value) -> Value {
    json!({"jsonrpc":"2.0","method":"_claude/sdkMessage",
        "params":{"sessionId":"s1","message":message}})
}

#[test]
fn an_option_is_told_at_once_and_again_after_a_load() {
    let mut stage = able();
    assert_eq!(
        stage.step(choose("model", "haiku")),
        [
            r#"send session/set_config_option 5 {"configId":"model","sessionId":"s1","value":"haiku"}"#
        ]
    );
    assert_eq!(stage.state.offer.pending(), [chosen("model", "haiku")]);
    assert_eq!(
        stage.reply(5, json!({"configOptions":options("default","haiku")})),
        [r#"4 {"kind":"option_set","option":"model","value":"haiku"}"#]
    );
    assert_eq!(stage.state.offer.pending(), []);

    stage.gone("gone");
    stage.prompt("go");
    stage.step(ThreadInput::Started);
    stage.reply(
        6,
        json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}}),
    );
    stage.reply(7, json!({"configOptions":options("auto","opus")}));
    assert_eq!(
        stage.reply(8, json!({"configOptions":options("default","opus")}))[1],
        r#"send session/set_config_option 9 {"configId":"model","sessionId":"s1","value":"haiku"}"#,
        "before the prompt"
    );
    let ready = stage.reply(9, json!({"configOptions":options("default","haiku")}));
    assert_eq!(ready[1], r#"send session/prompt 10 "go""#, "{ready:?}");
}

#[test]
fn a_chosen_mode_holds_instead_of_the_one_that_asks() {
    let mut stage = able();
    stage.step(choose("mode", "plan"));
    let set = stage.reply(5, json!({"configOptions":options("plan","opus")}));
    assert_eq!(set[0], r#"4 {"kind":"mode","mode":"plan"}"#);
    stage.gone("gone");
    stage.prompt("go");
    stage.step(ThreadInput::Started);
    stage.reply(
        6,
        json!({"protocolVersion":1,"agentCapabilities":{"loadSession":true}}),
    );
    assert_eq!(
        stage.reply(7, json!({"configOptions":options("auto","opus")})),
        [r#"send session/set_config_option 8 {"configId":"mode","sessionId":"s1","value":"plan"}"#]
    );
    // Left with a person's leave: what the agent says then is what is to hold.
    stage.reply(8, json!({"configOptions":options("plan","opus")}));
    stage.update(json!({"sessionUpdate":"current_mode_update","currentModeId":"default"}));
    assert_eq!(stage.state.offer.chosen_mode(), Some("default"));
}

#[test]
fn a_refused_option_is_told_and_forgotten() {
    let mut stage = able();
    stage.step(choose("model", "haiku"));
    assert_eq!(
        stage.fail(5, json!({"code":-32602,"message":"not yours"})),
        [
            r#"4 {"kind":"option_set","option":"model","value":"haiku","refused":"not yours (-32602)"}"#
        ]
    );
    assert_eq!(stage.state.offer.pending(), []);
    assert_eq!(stage.state.shown(), Shown::Idle, "it fails nothing");
}

#[test]
fn what_is_not_offered_cannot_be_chosen() {
    let stage = able();
    let admit = |option, value| stage.state.admit(Act::Choose(vec![chosen(option, value)]));
    assert!(admit("model", "haiku").is_ok(), "positive control");
    let failure = admit("model", "gpt").unwrap_err();
    assert_eq!(failure.to_string(), "the option `model` has no value `gpt`");
    assert_eq!(failure.hint().unwrap(), "there are: opus, haiku");
    assert_eq!(
        admit("colour", "red").unwrap_err().to_string(),
        "the agent offers no option `colour`"
    );
}

#[test]
fn what_waits_can_be_changed_deleted_and_sent_now() {
    let mut stage = able();
    stage.prompt("go");
    for text in ["one", "two", "three"] {
        stage.prompt(text);
    }
    let edit = QueueChange::Edit {
        queued: 1,
        text: "uno".into(),
    };
    stage.step(ThreadInput::Queued(edit));
    stage.step(ThreadInput::Queued(QueueChange::Delete { queued: 2 }));
    let texts: Vec<String> = stage
        .state
        .queue
        .whole()
        .into_iter()
        .map(|one| one.text)
        .collect();
    assert_eq!(texts, ["uno", "three"]);
    let gone = Act::Queue(QueueChange::Delete { queued: 2 });
    assert_eq!(stage.state.admit(gone), Err(ActFailure::NotQueued(2)));
    assert_eq!(
        stage.step(ThreadInput::Queued(QueueChange::SendNow { queued: 3 }))[1],
        r#"send _session/steering 6 {"_meta":{"steering":{"idleBehavior":"promptRequired"}},"prompt":[{"text":"three","type":"text"}],"sessionId":"s1"}"#
    );
    let told = stage.reply(6, json!({"outcome":"injected"}));
    assert!(
        told[0].ends_with(r#"{"kind":"steered","text":"three"}"#),
        "{told:?}"
    );
    let next = stage.reply(5, json!({"stopReason":"end_turn"}));
    assert_eq!(next.last().unwrap(), r#"send session/prompt 7 "uno""#);
}

#[test]
fn a_steered_prompt_the_agent_leaves_to_us_is_sent_once() {
    let mut stage = able();
    stage.prompt("go");
    stage.step(steer("wait"));
    let ended = stage.reply(5, json!({"stopReason":"end_turn"}));
    assert_eq!(ended.len(), 1, "not while the agent may have it: {ended:?}");
    let told = stage.reply(6, json!({"outcome":"promptRequired"}));
    assert_eq!(told.last().unwrap(), r#"send session/prompt 7 "wait""#);
    assert_eq!(stage.state.queue.len(), 0);
}

#[test]
fn an_agent_that_does_not_say_whether_it_took_it_is_not_asked_twice() {
    let mut stage = able();
    stage.prompt("go");
    stage.step(steer("wait"));
    assert_eq!(stage.state.deadline_ms(), Some(31_000));
    stage.now_ms = 31_000;
    let told = stage.step(ThreadInput::Tick);
    assert!(
        told[1].ends_with(r#"{"kind":"steered","text":"wait"}"#),
        "{told:?}"
    );
    assert_eq!(stage.state.queue.len(), 0);
}

#[test]
fn without_steering_the_turn_makes_room() {
    let mut stage = Stage::running();
    stage.prompt("later");
    assert_eq!(
        stage.step(steer("now"))[1],
        r#"send session/cancel {"sessionId":"s1"}"#
    );
    let next = stage.reply(5, json!({"stopReason":"cancelled"}));
    assert_eq!(next.last().unwrap(), r#"send session/prompt 6 "now""#);
    let next = stage.reply(6, json!({"stopReason":"end_turn"}));
    assert_eq!(
        next.last().unwrap(),
        r#"send session/prompt 7 "later""#,
        "and nothing is held"
    );
}

#[test]
fn a_steered_prompt_is_not_lost_with_the_agent() {
    let mut stage = able();
    stage.prompt("go");
    stage.step(steer("wait"));
    stage.gone("gone");
    assert!(stage.state.queue.is_held());
    assert_eq!(stage.state.queue.whole()[0].text, "wait");
}

#[test]
fn work_in_the_background_is_a_state_and_rows_of_its_own() {
    let mut stage = able();
    stage.prompt("go");
    let tasks = json!([{"task_id":"b1","task_type":"local_bash","description":"sleep 60"}]);
    let changed = |tasks: &Value| {
        sdk(json!({"type":"system","subtype":"background_tasks_changed","tasks":tasks}))
    };
    assert_eq!(
        stage.line(changed(&tasks)),
        [
            r#"5 {"kind":"background","tasks":[{"task":"b1","about":"local_bash","title":"sleep 60","since_ms":1000}]}"#
        ]
    );
    assert_eq!(stage.state.shown(), Shown::Running, "a turn runs");
    stage.reply(5, json!({"stopReason":"end_turn"}));
    assert_eq!(stage.state.shown(), Shown::Background);
    assert_eq!(stage.state.shown().symbol(), '◍');
    stage.now_ms = 5000;
    assert_eq!(
        stage.line(changed(&tasks)),
        Vec::<String>::new(),
        "nothing new"
    );

    // It ends and wakes the agent, which goes on though nobody asked.
    stage.line(changed(&json!([])));
    assert_eq!(
        stage.line(sdk(
            json!({"type":"system","subtype":"task_notification","task_id":"b1",
            "status":"completed","summary":"Background command completed"})
        )),
        [
            r#"8 {"kind":"woke","task":"b1","summary":"Background command completed","status":"completed"}"#
        ]
    );
    let now =
        |state: &str| sdk(json!({"type":"system","subtype":"session_state_changed","state":state}));
    stage.line(now("running"));
    assert_eq!(stage.state.shown(), Shown::Running);
    stage.text("It is done.");
    stage.line(now("idle"));
    assert_eq!(stage.state.shown(), Shown::Idle);
    stage.line(now("running"));
    stage.gone("gone");
    assert_ne!(stage.state.shown(), Shown::Running, "nobody works any more");
}

#[test]
fn a_question_is_another_state_than_a_permission() {
    let mut stage = able();
    stage.prompt("go");
    stage.line(
        json!({"id":"q","method":"elicitation/create","params":{"message":"Which?",
        "requestedSchema":{"properties":{"q":{"enum":["a","b"]}}}}}),
    );
    assert_eq!(stage.state.shown(), Shown::Asks);
    stage.permission(json!(0), "t1");
    assert_eq!(
        stage.state.shown(),
        Shown::NeedsYou,
        "a permission counts for more"
    );
}

#[test]
fn a_task_is_ended_only_by_an_agent_that_can() {
    let mut stage = able();
    stage.line(sdk(
        json!({"type":"system","subtype":"background_tasks_changed",
        "tasks":[{"task_id":"b1"}]}),
    ));
    let stop = |task: &str| Act::StopTask {
        task: task.into(),
        by: "me".into(),
    };
    assert_eq!(stage.state.admit(stop("b1")), Err(ActFailure::NoStop));
    stage.state.can.stop_task = true;
    assert_eq!(
        stage.state.admit(stop("b2")),
        Err(ActFailure::NoTask("b2".into()))
    );
    let input = stage.state.admit(stop("b1")).unwrap();
    assert_eq!(
        stage.step(input)[1],
        r#"send _session/async_task/stop 5 {"asyncTaskId":"b1","sessionId":"s1"}"#
    );
    let told = stage.reply(5, json!({"stopped":false}));
    assert!(
        told[0].contains("goes on: the agent did not end it"),
        "{told:?}"
    );
}

#[test]
fn a_title_of_a_person_stays() {
    let mut stage = able();
    stage.step(ThreadInput::Rename {
        title: "mine".into(),
    });
    stage.update(json!({"sessionUpdate":"session_info_update","title":"its own"}));
    assert_eq!(stage.state.title, "mine");
}

#[test]
fn a_thread_is_opened_before_there_is_a_prompt() {
    let mut stage = Stage::new(Asks::Person);
    assert_eq!(stage.step(ThreadInput::Open), ["start 1"]);
    stage.set_up();
    assert_eq!(stage.state.shown(), Shown::Idle);
    assert_eq!(stage.prompt("go")[1], r#"send session/prompt 4 "go""#);
}

#[test]
fn a_fork_is_opened_as_a_copy_and_in_plan_mode() {
    let mut stage = able();
    stage.state.known_as = None;
    stage.state.fork_of = Some("s1".into());
    stage.state.offer.choose(chosen("mode", "plan"));
    stage.gone("gone");
    assert_eq!(stage.step(ThreadInput::Open), ["start 2"]);
    stage.step(ThreadInput::Started);
    assert_eq!(
        stage.reply(
            5,
            json!({"protocolVersion":1,
            "agentCapabilities":{"sessionCapabilities":{"fork":{}}}})
        ),
        [r#"send session/fork 6 {"cwd":"/workspace","mcpServers":[],"sessionId":"s1"}"#]
    );
    assert_eq!(
        stage.text("what was said before"),
        Vec::<String>::new(),
        "the journal has it already"
    );
    assert_eq!(
        stage.reply(
            6,
            json!({"sessionId":"s2","configOptions":options("default","opus")})
        ),
        [r#"send session/set_config_option 7 {"configId":"mode","sessionId":"s2","value":"plan"}"#]
    );
    stage.reply(7, json!({"configOptions":options("plan","opus")}));
    assert_eq!(stage.state.fork_of, None, "from now on it is loaded");
    assert_eq!(stage.state.known_as.as_deref(), Some("s2"));
}

#[test]
fn an_agent_that_lost_its_ability_to_fork_says_so() {
    let mut stage = Stage::new(Asks::Person);
    stage.state.fork_of = Some("s1".into());
    stage.step(ThreadInput::Open);
    stage.step(ThreadInput::Started);
    let told = stage.reply(1, json!({"protocolVersion":1}));
    assert!(
        told[1].contains("the agent cannot fork a conversation"),
        "{told:?}"
    );
}
