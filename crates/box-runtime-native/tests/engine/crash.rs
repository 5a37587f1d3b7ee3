//! A host that is killed in the middle of a verb: the next one finds the old state or the new one.

use crate::harness::{GRACE, Host, Quiet, Running, names, told};
use crate::snapshots::{label, restore, source, take};
use crate::transfer;
use crate::tree::{assert_same, of_box};
use box_api::BoxId;
use box_api::control::Profile;
use box_api::snapshot::SnapshotKind;
use box_runtime::{BoxSpec, Runtime, SnapshotSpec, Snapshots};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

const FLAG: &str = "--be-killed";

/// Verbs, and where each is cut.
const CUTS: &[(&str, &[&str])] = &[
    ("create", &["create.made", "create.placed"]),
    ("snapshot", &["snapshot.copied", "snapshot.published"]),
    ("restore", &["restore.copied", "tree.exchanged"]),
    (
        "clone",
        &["clone.copied", "clone.inherited", "clone.published"],
    ),
    ("discard", &["snapshot.discarded"]),
    ("remove", &["remove.box", "remove.snapshots"]),
];

/// What this program is when it was started to be killed.
pub(crate) fn child() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, flag, place, verb, image, of, to] = arguments.as_slice() else {
        return None;
    };
    (flag == FLAG).then(|| {
        let (of, to) = (BoxId::parse(of).unwrap(), BoxId::parse(to).unwrap());
        act(Path::new(place), verb, &spec(of, image), &spec(to, image));
        // Nothing killed it.
        ExitCode::from(7)
    })
}

fn spec(id: BoxId, image: &str) -> BoxSpec {
    BoxSpec {
        id,
        host_name: "cut".to_owned(),
        image_digest: image.to_owned(),
        profile: Profile::Root,
        limits: box_api::control::Limits::default(),
        id_offset: 2_000_000_000,
        mounts: Vec::new(),
        files: Vec::new(),
        env: Vec::new(),
        nesting: box_runtime::Nesting::Refused,
    }
}

fn act(place: &Path, verb: &str, of: &BoxSpec, to: &BoxSpec) {
    let running = Running::start(place);
    let engine = &running.engine;
    let done = running.tokio.block_on(async {
        match verb {
            "create" => engine.create(to).await,
            "snapshot" => {
                let spec = SnapshotSpec {
                    label: label("new"),
                    kind: SnapshotKind::Manual,
                    at_ms: 2_000,
                };
                engine.take(&of.id, &spec, &Quiet).await.map(drop)
            }
            "restore" => engine.restore(&of.id, &label("kept"), &Quiet).await,
            "clone" => engine.clone_from(&source(of, None), to, &Quiet).await,
            "discard" => engine.discard(&of.id, &label("kept")).await,
            "remove" => engine.remove(&of.id).await,
            "export" | "import" => transfer::act(&running, place, verb, (of, to)).await,
            other => panic!("no verb `{other}`"),
        }
    });
    done.unwrap_or_else(|error| panic!("{}", told(&error)));
}

pub(crate) fn killed_at_any_point_a_verb_happened_or_did_not(host: &mut Host) {
    for (verb, points) in CUTS {
        for point in *points {
            cut(host, verb, point);
        }
    }
}

fn labels(host: &Host, id: &BoxId) -> impl Iterator<Item = String> {
    let listed = host.wait(Snapshots::list(host.engine(), id)).unwrap();
    listed.into_iter().map(|info| info.label.to_string())
}

/// Starts this program to do a verb and be killed at a point of it; another host takes over.
pub(crate) fn killed_at(
    host: &mut Host,
    (verb, point): (&str, &str),
    of: &BoxSpec,
    to: &BoxSpec,
) -> ExitStatus {
    let (place, image) = (host.path(""), host.image.clone());
    #[expect(clippy::disallowed_methods, reason = "a test program starts itself")]
    host.replace_after(|_| {
        Command::new(std::env::current_exe().unwrap())
            .arg(FLAG)
            .arg(&place)
            .args([verb, &image, of.id.as_str(), to.id.as_str()])
            .env("BOX_FAULT", point)
            .status()
            .unwrap()
    })
}

fn cut(host: &mut Host, verb: &str, point: &str) {
    let (of, to) = (host.made(Profile::Root), host.spec(Profile::Root));
    let folder = host.folder(&of);
    std::fs::write(folder.join("workspace/f"), "old").unwrap();
    std::fs::write(folder.join("upper/f"), "old").unwrap();
    take(host, &of.id, "kept");
    let kept = of_box(&folder);
    std::fs::write(folder.join("workspace/f"), "now").unwrap();
    let now = of_box(&folder);

    let status = killed_at(host, (verb, point), &of, &to);
    let at = format!("{verb} cut at {point}");
    assert_eq!(status.signal(), Some(9), "{at}: {status}");

    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new(), "{at}");
    let folders = |kind: &str| names(&host.path("data").join(kind));
    let listed: Vec<BoxId> = host
        .wait(Runtime::list(host.engine()))
        .unwrap()
        .iter()
        .map(|seen| seen.id)
        .collect();
    for owner in folders("snapshots") {
        assert!(
            folders("boxes").contains(&owner),
            "{at}: orphans of {owner}"
        );
    }
    let snapshots = host.path("data/snapshots");
    let snapshot = |id: &BoxId, text: &str| snapshots.join(id.as_str()).join(text);
    if listed.contains(&of.id) {
        let found = of_box(&folder);
        let restored = verb == "restore" && found == kept;
        assert_same(&found, if restored { &kept } else { &now }, &at);
        for text in labels(host, &of.id) {
            let tree = of_box(&snapshot(&of.id, &text));
            let expected = [&kept, &now][usize::from(text == "new")];
            assert_same(&tree, expected, &format!("{at}: snapshot {text}"));
        }
        let kept_is_there = labels(host, &of.id).any(|text| text == "kept");
        assert!(
            kept_is_there || verb == "discard",
            "{at}: a snapshot is lost"
        );
    } else {
        assert_eq!(verb, "remove", "{at}: the box is lost");
        assert!(!snapshot(&of.id, "kept").exists(), "{at}");
    }
    if listed.contains(&to.id) && verb == "clone" {
        assert_same(&of_box(&host.folder(&to)), &now, &at);
        assert_same(&of_box(&snapshot(&to.id, "kept")), &kept, &at);
    }
    // Whatever it is, it is a box, and the verb can be asked for again.
    for id in &listed {
        let mut again = host.spec(Profile::Root);
        again.id = *id;
        host.wait(host.engine().start(&again))
            .unwrap_or_else(|error| panic!("{at}: {}", told(&error)));
        host.wait(host.engine().stop(id, GRACE)).unwrap();
    }
    if listed.contains(&of.id) && labels(host, &of.id).any(|text| text == "kept") {
        restore(host, &of.id, "kept");
    }
    for id in listed {
        host.wait(host.engine().remove(&id)).unwrap();
    }
}
