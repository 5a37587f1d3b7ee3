//! The page's types in TypeScript, written from the types here and kept in `ui/src/wire`.
//!
//! `WIRE_UPDATE=1 cargo test -p box-api wire_types` writes them anew.

use super::{
    AgentCommands, Agents, AnswerAsk, Begun, Boxes, Checklist, ClientFrame, CloneAsk, Decisions,
    Doctor, Events, FoundFiles, Hurry, LogPage, LoginAsk, Me, NetLog, NewBoxAsk, NewLink, NewToken,
    OpenAsk, Pair, PairedBrowser, ParkAsk, ParkedThreads, PushAsk, PushDevice, PushKey, PushState,
    PushTested, RemoveAsk, RenameAsk, RowsPage, RunAsk, ServerFrame, ShellAsk, SignIns,
    SnapshotList, TakeAsk, TerminalAsk, TerminalSays, Threads, TokenAsk, Tokens, UndeleteAsk,
    UsageNow,
};
use crate::Problem;
use crate::control::{Attached, Restored, ShellEnded, Status};
use crate::network::PolicyShown;
use crate::restore_point::RestorePoints;
use crate::search::{Found, SearchAsk};
use crate::thread::JournalRow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use ts_rs::{Config, TS};

fn export<T: TS + 'static>(config: &Config) {
    T::export_all(config).unwrap();
}

fn written(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

fn export_everything(config: &Config) {
    export::<ServerFrame>(config);
    export::<ClientFrame>(config);
    export::<LogPage>(config);
    export::<RowsPage>(config);
    export::<Me>(config);
    export::<Pair>(config);
    export::<PairedBrowser>(config);
    export::<SignIns>(config);
    export::<Agents>(config);
    export::<Boxes>(config);
    export::<Threads>(config);
    export::<Decisions>(config);
    export::<Doctor>(config);
    export::<NetLog>(config);
    export::<UsageNow>(config);
    export::<SnapshotList>(config);
    export::<Status>(config);
    export::<PolicyShown>(config);
    export::<Restored>(config);
    export::<NewBoxAsk>(config);
    export::<RunAsk>(config);
    export::<Begun>(config);
    export::<AnswerAsk>(config);
    export::<Hurry>(config);
    export::<RenameAsk>(config);
    export::<RemoveAsk>(config);
    export::<UndeleteAsk>(config);
    export::<TakeAsk>(config);
    export::<Events>(config);
    export::<NewLink>(config);
    export::<JournalRow>(config);
    export::<OpenAsk>(config);
    export::<ParkAsk>(config);
    export::<ParkedThreads>(config);
    export::<ShellAsk>(config);
    export::<ShellEnded>(config);
    export::<Attached>(config);
    export::<RestorePoints>(config);
    export::<SearchAsk>(config);
    export::<Found>(config);
    export::<AgentCommands>(config);
    export::<FoundFiles>(config);
    export::<CloneAsk>(config);
    export::<PushState>(config);
    export::<PushKey>(config);
    export::<PushAsk>(config);
    export::<PushDevice>(config);
    export::<PushTested>(config);
    export::<Checklist>(config);
    export::<LoginAsk>(config);
    export::<TerminalAsk>(config);
    export::<TerminalSays>(config);
    export::<TokenAsk>(config);
    export::<NewToken>(config);
    export::<Tokens>(config);
    export::<Problem>(config);
}

#[test]
fn wire_types_of_the_page_are_those_of_the_host() {
    let scratch = tempfile::tempdir().unwrap();
    let config = Config::new()
        .with_large_int("number")
        .with_out_dir(scratch.path());
    export_everything(&config);
    let made = written(scratch.path());
    assert!(made.len() > 50, "only {} types were written", made.len());
    let kept: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src/wire");
    if std::env::var_os("WIRE_UPDATE").is_some() {
        for name in written(&kept).keys() {
            std::fs::remove_file(kept.join(name)).unwrap();
        }
        for (name, text) in &made {
            let path = kept.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    let there = written(&kept);
    let differ: Vec<&String> = made
        .keys()
        .chain(there.keys())
        .filter(|name| made.get(*name) != there.get(*name))
        .collect();
    assert!(
        differ.is_empty(),
        "`ui/src/wire` is not what the types say (`WIRE_UPDATE=1` writes it): {differ:?}"
    );
}
