//! Boxes as archives: out of one place and into another, whatever the disk, whatever goes wrong.

use crate::harness::{Claim, GRACE, Host, Quiet, Running, names, told};
use crate::snapshots::{edit, install, restore, take};
use crate::tree::{assert_same, of_box};
use crate::{crash, machines};
use box_api::BoxId;
use box_api::control::Profile;
use box_runtime::archive::{ImageInArchive, LeftOut};
use box_runtime::{
    Arrived, BoxSpec, Freezer as _, Luggage, Manifest, Runtime, RuntimeError, Snapshots, Terms,
    Transfer as _,
};
use box_runtime_native::NativeRuntime;
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

pub(crate) const CLAIMS: &[Claim] = &[
    Claim(
        "a_box_and_its_snapshots_arrive_exactly_on_ext4",
        arrives_exactly,
        machines::plain,
    ),
    Claim(
        "a_box_and_its_snapshots_arrive_exactly_on_xfs",
        arrives_exactly,
        machines::xfs,
    ),
    Claim(
        "a_box_and_its_snapshots_arrive_exactly_on_btrfs",
        arrives_exactly,
        machines::btrfs,
    ),
    Claim(
        "killed_while_a_box_travels_on_ext4",
        killed_while_a_box_travels,
        machines::plain,
    ),
    Claim(
        "killed_while_a_box_travels_on_btrfs",
        killed_while_a_box_travels,
        machines::btrfs,
    ),
    Claim(
        "a_box_brings_its_image_and_no_other_box_gets_it",
        brings_its_image,
        machines::plain,
    ),
    Claim(
        "an_archive_cut_anywhere_leaves_nothing",
        cut_anywhere,
        machines::plain,
    ),
    Claim(
        "whoever_goes_away_leaves_nothing",
        whoever_goes_away,
        machines::plain,
    ),
    Claim(
        "an_archive_larger_than_its_box_may_be_is_refused",
        larger_than_allowed,
        machines::plain,
    ),
];

/// What ordinary users can do as well.
pub(crate) const OF_USERS: &[Claim] = &[
    Claim("a_locked_box_travels", locked_box_travels, machines::plain),
    Claim("a_root_box_travels", root_box_travels, machines::plain),
];

const EVERYTHING: Luggage = Luggage {
    snapshots: true,
    image: true,
};

fn manifest(spec: &BoxSpec) -> Manifest {
    Manifest {
        format: 0,
        id: spec.id,
        name: box_api::BoxName::parse("demo").unwrap(),
        exported_at_ms: 1_790_000_000_000,
        runtime: String::new(),
        image: "file:image.tar".to_owned(),
        image_digest: spec.image_digest.clone(),
        with_image: false,
        image_env: Vec::new(),
        snapshots: Vec::new(),
        host: serde_json::Value::Null,
    }
}

fn pipe() -> (File, OwnedFd) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    (File::from(read), write)
}

async fn send(
    engine: &NativeRuntime,
    spec: &BoxSpec,
    luggage: Luggage,
) -> Result<(Vec<u8>, LeftOut), RuntimeError> {
    let runs = Runtime::list(engine).await?;
    let runs = runs.iter().any(|seen| seen.id == spec.id && seen.running);
    if runs {
        engine.freeze(&spec.id).await?;
    }
    let departure = engine.depart(spec, luggage, &Quiet).await;
    if runs {
        engine.thaw(&spec.id).await?;
    }
    let departure = departure?;
    let (mut read, write) = pipe();
    let reader = std::thread::spawn(move || {
        let mut archive = Vec::new();
        read.read_to_end(&mut archive).unwrap();
        archive
    });
    let left_out = departure.send(manifest(spec), write, &Quiet).await?;
    Ok((reader.join().unwrap(), left_out))
}

/// Feeds an archive into a pipe; whoever reads may stop.
fn fed(archive: &[u8]) -> (OwnedFd, JoinHandle<()>) {
    let (read, write) = pipe();
    let archive = archive.to_vec();
    let feeder = std::thread::spawn(move || drop(File::from(write).write_all(&archive)));
    (OwnedFd::from(read), feeder)
}

async fn receive(
    engine: &NativeRuntime,
    archive: &[u8],
    terms: Terms,
) -> Result<Box<dyn Arrived>, RuntimeError> {
    let (read, feeder) = fed(archive);
    let arrived = async {
        let arrival = engine.arrive(read).await?;
        arrival.receive(terms, &Quiet).await
    };
    let arrived = arrived.await;
    feeder.join().unwrap();
    arrived
}

fn terms(spec: &BoxSpec) -> Terms {
    Terms {
        profile: spec.profile,
        state_bytes_max: 1 << 30,
        image: ImageInArchive::Unpacked,
    }
}

fn export(host: &Host, spec: &BoxSpec) -> Vec<u8> {
    let sent = host.wait(send(host.engine(), spec, EVERYTHING));
    sent.unwrap_or_else(|error| panic!("{}", told(&error))).0
}

fn import(host: &Host, archive: &[u8], spec: &BoxSpec) {
    let done = host.wait(async {
        let arrived = receive(host.engine(), archive, terms(spec)).await?;
        arrived.settle(spec).await
    });
    done.unwrap_or_else(|error| panic!("{}", told(&error)));
}

/// What does not travel: sockets, marks about inodes of this disk, whose a whiteout is.
fn portable(tree: BTreeMap<PathBuf, String>) -> BTreeMap<PathBuf, String> {
    const SOCKET: &str = "14";
    let travels = tree.into_iter().filter(|(_, what)| {
        !(what.len() > 6 && what.starts_with(SOCKET) && what.find(' ') == Some(6))
    });
    let same = travels.map(|(path, what)| {
        let mut words: Vec<&str> = what.split(' ').collect();
        if what.contains(" device 0") {
            words.truncate(1);
        }
        let lost = ["trusted.overlay.impure=", "trusted.overlay.origin="];
        let mut text = String::new();
        let mut skip = false;
        for word in words {
            if word.contains('=') && !word.starts_with('[') {
                skip = lost.iter().any(|lost| word.starts_with(lost));
            }
            if !skip {
                text.push(' ');
                text.push_str(word);
            }
        }
        (path, text)
    });
    same.collect()
}

fn snapshot(host: &Host, id: &BoxId, text: &str) -> PathBuf {
    host.path("data/snapshots").join(id.as_str()).join(text)
}

fn labels(host: &Host, id: &BoxId) -> Vec<String> {
    let listed = host.wait(Snapshots::list(host.engine(), id)).unwrap();
    listed
        .into_iter()
        .map(|info| info.label.to_string())
        .collect()
}

fn arrives_exactly(host: &mut Host) {
    let (spec, _sockets) = host.running(Profile::Root);
    host.ask(
        &spec,
        "mv /var /varied && mkdir -p /etc/a/b && touch /varied/new",
    );
    for step in 0..60 {
        edit(host, &spec, step);
        if step % 15 == 7 {
            install(host, &spec, step);
            host.wait(host.engine().freeze(&spec.id)).unwrap();
            take(host, &spec.id, &format!("s{step:02}"));
            host.wait(host.engine().thaw(&spec.id)).unwrap();
        }
    }
    let texts = ["s07", "s22", "s37", "s52"];
    assert_eq!(labels(host, &spec.id), texts);
    let before: Vec<_> = texts
        .map(|text| of_box(&snapshot(host, &spec.id, text)))
        .into();
    let archive = export(host, &spec);
    host.wait(host.engine().stop(&spec.id, GRACE)).unwrap();
    let now = of_box(&host.folder(&spec));
    // The clock went on, and with it nothing else.
    let again = export(host, &spec);
    assert!(
        archive == again,
        "a running box and the same at rest differ"
    );
    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new());
    host.wait(host.engine().remove(&spec.id)).unwrap();

    let other = host.spec(Profile::Root);
    import(host, &archive, &other);
    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new());
    let same = |found, expected, what| assert_same(&portable(found), &portable(expected), what);
    same(of_box(&host.folder(&other)), now, "the box");
    assert_eq!(labels(host, &other.id), texts);
    for (text, tree) in texts.iter().zip(before.clone()) {
        same(of_box(&snapshot(host, &other.id, text)), tree, text);
    }
    // It is a box, and another machine than it was.
    let _sockets = host.wait(host.engine().start(&other)).unwrap();
    assert_eq!(
        host.ask(&other, "ls -d /varied/new; test -e /var || echo gone"),
        "/varied/new\ngone\n"
    );
    host.wait(host.engine().stop(&other.id, GRACE)).unwrap();
    restore(host, &other.id, "s22");
    same(of_box(&host.folder(&other)), before[1].clone(), "restored");
}

fn travels(host: &mut Host, profile: Profile) {
    let (spec, _sockets) = host.running(profile);
    let home = if profile == Profile::Root {
        "/root"
    } else {
        "/home/agent"
    };
    host.ask(
        &spec,
        &format!(
            "echo work >/workspace/w; mkdir -p {home}/d; echo mine >{home}/d/h; \
             ln {home}/d/h {home}/again; ln -s /etc/passwd {home}/l; chmod 600 {home}/d/h"
        ),
    );
    if profile == Profile::Root {
        host.ask(
            &spec,
            "echo other >/etc/new; rm /etc/passwd; chmod u+s /workspace/w",
        );
    }
    take(host, &spec.id, "kept");
    let archive = export(host, &spec);
    let id = host.ask(&spec, "cat /etc/machine-id");
    host.wait(host.engine().remove(&spec.id)).unwrap();
    let other = host.spec(profile);
    import(host, &archive, &other);
    let _sockets = host.wait(host.engine().start(&other)).unwrap();
    let line = format!("cat /workspace/w {home}/d/h {home}/again; test -L {home}/l && echo link");
    assert_eq!(host.ask(&other, &line), "work\nmine\nmine\nlink\n");
    assert_eq!(host.ask(&other, &format!("stat -c %a {home}/d/h")), "600\n");
    host.ask(
        &other,
        &format!("echo more >>{home}/d/h; echo new >{home}/new"),
    );
    if profile == Profile::Root {
        assert_eq!(
            host.ask(
                &other,
                "cat /etc/new; ls /etc/passwd 2>/dev/null || echo gone"
            ),
            "other\ngone\n"
        );
        assert_eq!(host.ask(&other, "stat -c %a /workspace/w"), "4644\n");
    }
    assert_ne!(host.ask(&other, "cat /etc/machine-id"), id);
    assert_eq!(labels(host, &other.id), ["kept"]);
    host.wait(host.engine().stop(&other.id, GRACE)).unwrap();
    restore(host, &other.id, "kept");
    let _sockets = host.wait(host.engine().start(&other)).unwrap();
    assert_eq!(host.ask(&other, &format!("cat {home}/d/h")), "mine\n");
}

fn locked_box_travels(host: &mut Host) {
    travels(host, Profile::Locked);
}

fn root_box_travels(host: &mut Host) {
    travels(host, Profile::Root);
}

fn brings_its_image(host: &mut Host) {
    let spec = host.made(Profile::Locked);
    let archive = export(host, &spec);
    let without = Luggage {
        image: false,
        ..EVERYTHING
    };
    let (small, _) = host.wait(send(host.engine(), &spec, without)).unwrap();
    assert!(small.len() * 10 < archive.len(), "{} bytes", small.len());
    host.wait(host.engine().remove(&spec.id)).unwrap();
    let images = host.engine().images();
    let digest = format!("sha256:{}", spec.image_digest);
    host.wait(images.remove(&digest)).unwrap();
    assert!(!images.is_ready(&spec.image_digest));

    let mut other = host.spec(Profile::Locked);
    let arrived = host
        .wait(receive(host.engine(), &small, terms(&other)))
        .unwrap();
    assert_eq!(arrived.image(), None);
    let refused = host.wait(arrived.settle(&other)).unwrap_err().to_string();
    assert!(refused.contains("image"), "{refused}");

    let arrived = host
        .wait(receive(host.engine(), &archive, terms(&other)))
        .unwrap();
    let brought = arrived.image().unwrap().to_owned();
    // What the archive calls it is a claim: whoever asks for that digest must not get this.
    assert_ne!(brought, spec.image_digest);
    other.image_digest.clone_from(&brought);
    host.wait(arrived.settle(&other)).unwrap();
    let images = host.engine().images();
    assert!(images.is_ready(&brought) && !images.is_ready(&spec.image_digest));
    let _sockets = host.wait(host.engine().start(&other)).unwrap();
    assert_eq!(host.ask(&other, "id -u"), "1020\n");

    // The same image again is the same image, also after another journey.
    let again = host
        .wait(receive(host.engine(), &archive, terms(&other)))
        .unwrap();
    assert_eq!(again.image(), Some(brought.as_str()));
    drop(again);
    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new());
}

fn cut_anywhere(host: &mut Host) {
    let spec = host.made(Profile::Root);
    std::fs::write(host.folder(&spec).join("home/f"), vec![b'x'; 300_000]).unwrap();
    take(host, &spec.id, "kept");
    let archive = export(host, &spec);
    let other = host.spec(Profile::Root);
    for sixteenth in 0..16 {
        let cut = &archive[..archive.len() * sixteenth / 16];
        let error = host
            .wait(receive(host.engine(), cut, terms(&other)))
            .unwrap_err();
        assert!(
            matches!(error, RuntimeError::Refused { .. }),
            "{sixteenth}/16: {error:?}"
        );
        assert_eq!(
            names(&host.path("data/tmp")),
            Vec::<String>::new(),
            "{sixteenth}/16"
        );
    }
    assert_eq!(names(&host.path("data/boxes")), [spec.id.as_str()]);
    import(host, &archive, &other);
}

fn whoever_goes_away(host: &mut Host) {
    let spec = host.made(Profile::Root);
    let noise: Vec<u8> = (0..2_000_000_u64)
        .map(|n| (n.wrapping_mul(n) >> 7).to_le_bytes()[0])
        .collect();
    std::fs::write(host.folder(&spec).join("home/f"), noise).unwrap();
    let departure = host
        .wait(host.engine().depart(&spec, EVERYTHING, &Quiet))
        .unwrap();
    let (read, write) = pipe();
    drop(read);
    let error = host
        .wait(departure.send(manifest(&spec), write, &Quiet))
        .unwrap_err();
    assert!(
        error.to_string().contains("does not take it any more"),
        "{error}"
    );
    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new());
    // And the box is let go of.
    let _sockets = host.wait(host.engine().start(&spec)).unwrap();
}

fn larger_than_allowed(host: &mut Host) {
    let spec = host.made(Profile::Root);
    std::fs::write(host.folder(&spec).join("home/f"), vec![b'x'; 3 << 20]).unwrap();
    let archive = export(host, &spec);
    let small = Terms {
        state_bytes_max: 2 << 20,
        ..terms(&spec)
    };
    let error = host
        .wait(receive(host.engine(), &archive, small))
        .unwrap_err();
    assert!(
        error.to_string().contains("more than 2097152 bytes"),
        "{error}"
    );
    // A root where there is none.
    std::fs::write(host.folder(&spec).join("upper/f"), "x").unwrap();
    let archive = export(host, &spec);
    let locked = Terms {
        profile: Profile::Locked,
        ..terms(&spec)
    };
    let error = host
        .wait(receive(host.engine(), &archive, locked))
        .unwrap_err();
    assert!(error.to_string().contains("changes to the root"), "{error}");
    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new());
}

/// Where both ways are cut.
const CUTS: &[(&str, &[&str])] = &[
    ("export", &["export.held", "export.half", "export.written"]),
    (
        "import",
        &[
            "import.received",
            "import.image",
            "import.prepared",
            "import.snapshots",
            "import.published",
        ],
    ),
];

const ARCHIVE: &str = "box.tar.zst";

/// What a host does that is going to be killed.
pub(crate) async fn act(
    running: &Running,
    place: &Path,
    verb: &str,
    (of, to): (&BoxSpec, &BoxSpec),
) -> Result<(), RuntimeError> {
    if verb == "export" {
        let (archive, _) = send(&running.engine, of, EVERYTHING).await?;
        std::fs::write(place.join("other"), archive).unwrap();
        return Ok(());
    }
    let archive = std::fs::read(place.join(ARCHIVE)).unwrap();
    let arrived = receive(&running.engine, &archive, terms(to)).await?;
    arrived.settle(to).await
}

fn killed_while_a_box_travels(host: &mut Host) {
    let of = host.made(Profile::Root);
    std::fs::write(host.folder(&of).join("workspace/f"), "kept").unwrap();
    take(host, &of.id, "kept");
    std::fs::write(host.folder(&of).join("workspace/f"), "now").unwrap();
    let tree = of_box(&host.folder(&of));
    std::fs::write(host.path(ARCHIVE), export(host, &of)).unwrap();
    for (verb, points) in CUTS {
        for point in *points {
            cut(host, (verb, point), &of, &tree);
        }
    }
}

fn cut(
    host: &mut Host,
    (verb, point): (&str, &str),
    of: &BoxSpec,
    tree: &BTreeMap<PathBuf, String>,
) {
    let to = host.spec(Profile::Root);
    let status = crash::killed_at(host, (verb, point), of, &to);
    let at = format!("{verb} cut at {point}");
    assert_eq!(status.signal(), Some(9), "{at}: {status}");
    assert_eq!(names(&host.path("data/tmp")), Vec::<String>::new(), "{at}");
    assert_same(&of_box(&host.folder(of)), tree, &at);
    assert_eq!(labels(host, &of.id), ["kept"], "{at}");
    let boxes = names(&host.path("data/boxes"));
    for owner in names(&host.path("data/snapshots")) {
        assert!(boxes.contains(&owner), "{at}: orphans of {owner}");
    }
    let there = boxes.iter().any(|id| id == to.id.as_str());
    assert_eq!(there, point == "import.published", "{at}");
    if there {
        let found = portable(of_box(&host.folder(&to)));
        assert_same(&found, &portable(tree.clone()), &at);
        assert_eq!(labels(host, &to.id), ["kept"], "{at}");
        host.wait(host.engine().remove(&to.id)).unwrap();
    }
    // And the verb can be asked for again.
    let archive = export(host, of);
    import(host, &archive, &to);
    host.wait(host.engine().remove(&to.id)).unwrap();
}
