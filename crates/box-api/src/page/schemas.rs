//! The page's types as JSON Schema, for the `OpenAPI` document, written from the types here and kept
//! in `schemas.json` beside this file.
//!
//! `WIRE_UPDATE=1 cargo test -p box-api schemas_of` writes them anew.

use super::{
    AgentCommands, Agents, AnswerAsk, Begun, Boxes, Checklist, CloneAsk, Decisions, Doctor, Events,
    FoundFiles, Hurry, LogPage, LoginAsk, Me, NetLog, NewBoxAsk, NewLink, NewToken, OpenAsk, Pair,
    PairedBrowser, ParkAsk, ParkedThreads, PushAsk, PushKey, PushState, PushTested, RemoveAsk,
    RenameAsk, RowsPage, RunAsk, SCHEMAS, ShellAsk, SignIns, SnapshotList, TakeAsk, Threads,
    TokenAsk, TokenScope, Tokens, UndeleteAsk, UsageNow,
};
use crate::control::{
    Attached, BoxInfo, Haste, NetPreset, Profile, Restored, ShellEnded, Status, ThreadAct,
};
use crate::decision::FormAnswer;
use crate::network::PolicyShown;
use crate::restore_point::RestorePoints;
use crate::search::{Found, SearchAsk, SearchOrder};
use crate::snapshot::{Label, SnapshotInfo};
use crate::thread::{JournalRow, ThreadShown};
use crate::{BoxName, Problem};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::path::Path;

const DEFINITIONS: &str = "#/components/schemas/";

/// Schemas of one direction, by their names.
struct Side {
    generator: SchemaGenerator,
}

impl Side {
    fn new(settings: SchemaSettings) -> Self {
        let settings = settings.with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self {
            generator: settings.into_generator(),
        }
    }

    fn add<T: JsonSchema>(&mut self) {
        let _reference: Schema = self.generator.subschema_for::<T>();
    }

    fn done(mut self) -> Map<String, Value> {
        self.generator.take_definitions(true)
    }
}

/// What is asked.
fn asks() -> Map<String, Value> {
    let mut side = Side::new(SchemaSettings::draft2020_12());
    side.add::<Pair>();
    side.add::<TokenAsk>();
    side.add::<NewBoxAsk>();
    side.add::<RunAsk>();
    side.add::<AnswerAsk>();
    side.add::<Hurry>();
    side.add::<RenameAsk>();
    side.add::<RemoveAsk>();
    side.add::<UndeleteAsk>();
    side.add::<TakeAsk>();
    side.add::<OpenAsk>();
    side.add::<ParkAsk>();
    side.add::<ShellAsk>();
    side.add::<SearchAsk>();
    side.add::<ThreadAct>();
    side.add::<FormAnswer>();
    side.add::<CloneAsk>();
    side.add::<PushAsk>();
    side.add::<LoginAsk>();
    side.done()
}

/// What is answered.
fn answers() -> Map<String, Value> {
    let mut side = Side::new(SchemaSettings::draft2020_12().for_serialize());
    side.add::<Me>();
    side.add::<PairedBrowser>();
    side.add::<SignIns>();
    side.add::<NewLink>();
    side.add::<Tokens>();
    side.add::<NewToken>();
    side.add::<Status>();
    side.add::<Doctor>();
    side.add::<Agents>();
    side.add::<Boxes>();
    side.add::<BoxInfo>();
    side.add::<Threads>();
    side.add::<Begun>();
    side.add::<Attached>();
    side.add::<SnapshotList>();
    side.add::<SnapshotInfo>();
    side.add::<Restored>();
    side.add::<RestorePoints>();
    side.add::<NetLog>();
    side.add::<PolicyShown>();
    side.add::<Events>();
    side.add::<UsageNow>();
    side.add::<Found>();
    side.add::<crate::page::ThreadHead>();
    side.add::<ThreadShown>();
    side.add::<ShellEnded>();
    side.add::<ParkedThreads>();
    side.add::<LogPage>();
    side.add::<RowsPage>();
    side.add::<JournalRow>();
    side.add::<Decisions>();
    side.add::<AgentCommands>();
    side.add::<FoundFiles>();
    side.add::<PushState>();
    side.add::<PushKey>();
    side.add::<PushTested>();
    side.add::<Checklist>();
    side.add::<Problem>();
    side.done()
}

fn example(of: &str, value: &impl Serialize) -> (String, Value) {
    (of.to_owned(), serde_json::to_value(value).unwrap())
}

/// One body each, of the types themselves, so that none can be wrong.
fn examples() -> Map<String, Value> {
    let name = || BoxName::parse("web").unwrap();
    let label = Label::parse("tested").unwrap();
    let all = [
        example(
            "TokenAsk",
            &TokenAsk {
                label: "monitor".into(),
                scope: TokenScope::Read,
                name: None,
                days: Some(30),
            },
        ),
        example(
            "NewBoxAsk",
            &NewBoxAsk {
                name: name(),
                title: None,
                image: None,
                profile: Some(Profile::Locked),
                net: Some(NetPreset::Balanced),
                limits: None,
                allow: vec!["example.org".into()],
                settings: None,
                setup: None,
            },
        ),
        example(
            "AnswerAsk",
            &AnswerAsk {
                option: "allow_once".into(),
            },
        ),
        example(
            "Hurry",
            &Hurry {
                haste: Haste::Graceful,
            },
        ),
        example("RenameAsk", &RenameAsk { to: name() }),
        example("RemoveAsk", &RemoveAsk::default()),
        example("TakeAsk", &TakeAsk { label: Some(label) }),
        example(
            "ShellAsk",
            &ShellAsk {
                line: "git status".into(),
            },
        ),
        example(
            "SearchAsk",
            &SearchAsk {
                words: "failing test".into(),
                name: Some(name()),
                thread: None,
                kind: None,
                order: SearchOrder::default(),
                limit: 20,
            },
        ),
        example(
            "ThreadAct",
            &ThreadAct::Prompt {
                text: "fix the failing test".into(),
            },
        ),
        example("FormAnswer", &FormAnswer::Decline),
    ];
    all.into_iter().collect()
}

/// Points into `asks` where both sides have another shape under one name.
fn point(schema: &mut Value, differ: &[String]) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().filter(|_| name == "$ref") {
                    Some(text) => *value = json!(pointer(text, differ)),
                    None => point(value, differ),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| point(part, differ)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn pointer(text: &str, differ: &[String]) -> String {
    let of = text.strip_prefix(DEFINITIONS).unwrap_or_default();
    if differ.iter().any(|one| one == of) {
        format!("{DEFINITIONS}Ask.{of}")
    } else {
        text.to_owned()
    }
}

fn made() -> Value {
    let (asks, mut all) = (asks(), answers());
    let differ: Vec<String> = asks
        .iter()
        .filter(|(name, schema)| all.get(*name).is_some_and(|other| other != *schema))
        .map(|(name, _)| name.clone())
        .collect();
    for (name, mut schema) in asks {
        point(&mut schema, &differ);
        let name = if differ.contains(&name) {
            format!("Ask.{name}")
        } else {
            name
        };
        all.insert(name, schema);
    }
    for (name, example) in examples() {
        let schema = all.get_mut(&name).unwrap().as_object_mut().unwrap();
        schema.insert("examples".to_owned(), json!([example]));
    }
    Value::Object(all)
}

#[test]
fn schemas_of_the_page_are_those_of_the_host() {
    let made = serde_json::to_string_pretty(&made()).unwrap() + "\n";
    assert!(!made.contains("#/$defs/"), "a reference leads nowhere");
    if std::env::var_os("WIRE_UPDATE").is_some() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/schemas.json");
        std::fs::write(kept, made).unwrap();
        return;
    }
    assert!(
        made == SCHEMAS,
        "`schemas.json` is not what the types say; `WIRE_UPDATE=1` writes it"
    );
}
