//! Requests of agents as they were seen, and as they should not be.

use super::*;

fn option(id: &str, label: &str, kind: OptionKind) -> DecisionOption {
    DecisionOption {
        id: id.into(),
        label: label.into(),
        kind,
    }
}

/// claude's `AskUserQuestion`.
fn two_questions() -> Value {
    json!({
        "mode": "form", "message": "Please answer", "toolCallId": "t2",
        "requestedSchema": {"type":"object","properties":{
            "question_0": {"type":"string","description":"Which colour?",
                "oneOf":[{"const":"red","title":"Red"},{"const":"blue"}]},
            "question_0_custom": {"type":"string","title":"Other"},
            "question_1": {"type":"array","title":"Sizes","items":{"enum":["s","m"]}},
        }},
    })
}

fn values(values: &Value) -> Map<String, Value> {
    values.as_object().cloned().unwrap_or_default()
}

#[test]
fn a_permission_keeps_its_options_verbatim() {
    let (ask, call) = Ask::permission(json!({
        "sessionId": "s",
        "toolCall": {"toolCallId":"t1","title":"touch\nmade.txt","status":"pending"},
        "options": [
            {"optionId":"proceed_once","name":"Yes","kind":"allow_once"},
            {"optionId":"x","kind":"something_new"},
            {"name":"no id"},
        ],
    }))
    .unwrap();
    assert_eq!(
        ask.options,
        [
            option("proceed_once", "Yes", OptionKind::AllowOnce),
            option("x", "x", OptionKind::Other)
        ]
    );
    assert_eq!(
        (ask.title.as_str(), ask.call.as_deref(), ask.about),
        ("touch made.txt", Some("t1"), DecisionKind::Permission)
    );
    assert_eq!(call.call, "t1");
    assert_eq!(ask.cancelled(), json!({"outcome":{"outcome":"cancelled"}}));
    assert_eq!(
        ask.answer("proceed_once"),
        json!({"outcome":{"outcome":"selected","optionId":"proceed_once"}})
    );
    assert_eq!(
        Ask::permission(json!({"toolCall":{}})).unwrap_err().code,
        -32602
    );
}

#[test]
fn two_options_of_one_kind_are_told_apart() {
    let (ask, _) = Ask::permission(json!({"toolCall":{"toolCallId":"t"},"options":[
        {"optionId":"a","name":"Yes","kind":"allow_once"},
        {"optionId":"b","name":"Yes","kind":"allow_once"},
        {"optionId":"b","name":"the same again","kind":"reject_once"},
        {"optionId":"n","name":"Never","kind":"reject_always"},
    ]}))
    .unwrap();
    assert_eq!(
        ask.options,
        [
            option("a", "Yes", OptionKind::AllowOnce),
            option("b", "Yes (b)", OptionKind::AllowOnce),
            option("n", "Never", OptionKind::RejectAlways),
        ]
    );
    assert_eq!(ask.rejecting().map(|no| no.id.as_str()), Some("n"));
}

#[test]
fn a_plan_is_shown_as_one_with_its_text() {
    let plan = |call: Value| {
        let options = json!([{"optionId":"go","kind":"allow_once"}]);
        Ask::permission(json!({"toolCall":call,"options":options}))
            .unwrap()
            .0
    };
    let claude = plan(
        json!({"toolCallId":"t","kind":"switch_mode","title":"Ready to code?",
        "rawInput":{"plan":"# Plan\n1. test"},"content":[]}),
    );
    assert_eq!(claude.about, DecisionKind::Plan);
    assert_eq!(claude.text.as_deref(), Some("# Plan\n1. test"));
    let other = plan(json!({"toolCallId":"t","kind":"switch_mode",
        "content":[{"type":"content","content":{"type":"text","text":"the plan"}}]}));
    assert_eq!(other.text.as_deref(), Some("the plan"));
    let edit = plan(json!({"toolCallId":"t","kind":"edit","rawInput":{"plan":"x"}}));
    assert_eq!((edit.about, edit.text), (DecisionKind::Permission, None));
}

#[test]
fn a_form_of_two_questions_is_one_decision_answered_once() {
    let ask = Ask::form(&two_questions()).unwrap();
    assert_eq!(ask.title, "Please answer");
    assert_eq!(ask.call.as_deref(), Some("t2"));
    assert!(ask.options.is_empty(), "it is more than one choice");
    let content = ask
        .fill(&values(&json!({"question_0":"Red","question_1":"s,m"})))
        .unwrap();
    assert_eq!(
        accepted(&content),
        json!({"action":"accept","content":{"question_0":"red","question_1":["s","m"]}})
    );
    assert_eq!(summary(&content), "question_0=red question_1=s,m");
    let free = ask
        .fill(&values(&json!({"question_0_custom":"teal"})))
        .unwrap();
    assert_eq!(summary(&free), "teal");
    assert_eq!(ask.cancelled(), json!({"action":"cancel"}));
}

#[test]
fn every_kind_of_field_is_read() {
    let ask = Ask::form(&json!({"message":"m","requestedSchema":{"properties":{
        "text": {"type":"string","minLength":1,"maxLength":9,"default":"d"},
        "whole": {"type":"integer","minimum":1},
        "number": {"type":"number","maximum":2.5},
        "sure": {"type":"boolean"},
        "one": {"type":"string","enum":["a","b"],"enumNames":["A","B"]},
        "many": {"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]},"maxItems":1},
        "odd": {"type":"object"},
    },"required":["text"]}}))
    .unwrap();
    let kinds: Vec<(String, FieldKind)> = ask
        .sheet
        .unwrap()
        .fields
        .into_iter()
        .map(|field| (field.name, field.kind))
        .collect();
    let choice = |value: &str, label: &str| box_api::decision::FieldChoice {
        value: value.into(),
        label: label.into(),
    };
    for (name, kind) in [
        (
            "text",
            FieldKind::Text {
                chars_min: Some(1),
                chars_max: Some(9),
            },
        ),
        (
            "whole",
            FieldKind::Number {
                whole: true,
                min: Some(1.0),
                max: None,
            },
        ),
        (
            "number",
            FieldKind::Number {
                whole: false,
                min: None,
                max: Some(2.5),
            },
        ),
        ("sure", FieldKind::YesNo),
        (
            "one",
            FieldKind::One {
                choices: vec![choice("a", "A"), choice("b", "B")],
            },
        ),
        (
            "many",
            FieldKind::Many {
                choices: vec![choice("x", "X")],
                count_min: None,
                count_max: Some(1),
            },
        ),
    ] {
        assert!(
            kinds.contains(&(name.to_owned(), kind)),
            "{name}: {kinds:?}"
        );
    }
    assert_eq!(kinds.len(), 6, "what is no field is left out");
}

#[test]
fn a_request_too_long_to_be_saved_is_refused() {
    let long = "x".repeat(ASK_BYTES_MAX);
    let permission = |id: &str| {
        Ask::permission(json!({"toolCall":{"toolCallId":"t"},"options":[{"optionId":id}]}))
    };
    assert!(permission("short").is_ok());
    assert_eq!(permission(&long).unwrap_err().code, -32602);
    let form = |value: &str, key: &str, call: &str| {
        Ask::form(&json!({"message":"m","toolCallId":call,
            "requestedSchema":{"properties":{key:{"enum":[value]}}}}))
    };
    assert!(form("a", "q", "t").is_some());
    for (value, key, call) in [
        (long.as_str(), "q", "t"),
        ("a", &long, "t"),
        ("a", "q", &long),
    ] {
        assert_eq!(form(value, key, call), None);
    }
}

#[test]
fn a_form_that_is_one_choice_is_answered_like_a_permission() {
    let one = |schema: Value| {
        Ask::form(&json!({"message":"Which?","requestedSchema":{"properties":{"q":schema}}}))
            .unwrap()
    };
    let ask = one(json!({"type":"string","title":"Q","enum":["a","yes"]}));
    assert_eq!(ask.title, "Which?");
    assert_eq!(
        ask.answer("yes"),
        json!({"action":"accept","content":{"q":"yes"}})
    );
    let ask = one(json!({"type":"boolean"}));
    assert_eq!(ask.options.len(), 2);
    assert_eq!(
        ask.answer("yes"),
        json!({"action":"accept","content":{"q":true}})
    );
    assert!(one(json!({"type":"string"})).options.is_empty());
}

#[test]
fn forms_that_need_what_cannot_be_asked_are_not_asked() {
    let form = |mode: &str, properties: Value, required: Value| {
        Ask::form(&json!({"mode":mode,"message":"m",
            "requestedSchema":{"properties":properties,"required":required}}))
    };
    let choice = json!({"q":{"enum":["a"]},"odd":{"type":"object"}});
    assert!(
        form("form", choice.clone(), json!(["q"])).is_some(),
        "positive control"
    );
    assert_eq!(form("form", choice.clone(), json!(["q", "odd"])), None);
    assert_eq!(form("form", choice.clone(), json!(["q", "nowhere"])), None);
    assert_eq!(form("url", choice, json!([])), None);
    assert_eq!(
        form("form", json!({"odd":{"type":"object"}}), json!([])),
        None
    );
    assert_eq!(Ask::form(&json!({"message":"m"})), None);
}
