//! What snapshots and clones promise, for engines that have them.

use super::session::{Bench, Broken};
use super::{GRACE, Held};
use crate::{BoxSpec, CloneSource, Progress, Runtime, RuntimeError, SnapshotSpec, Snapshots};
use box_api::control::Profile;
use box_api::snapshot::{Label, SnapshotKind};

struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}

/// A file in each place a box keeps, with what a careless copy loses. Where a box has one id only,
/// nothing is given away.
const WRITE: &str = "set -e; echo kept >/workspace/f; chmod 600 /workspace/f; ln /workspace/f \
    /workspace/hard; ln -s f /workspace/soft; echo kept >~/h; touch -d @1000000000 ~/h; \
    echo kept >/usr/r; mkdir -p /usr/d; touch /usr/d/x; chown 33:34 /usr/d/x 2>/dev/null || :; chmod 6755 /usr/d/x; \
    rm /usr/bin/uname";
const CHANGE: &str = "set -e; echo changed >/workspace/f; rm /workspace/hard ~/h; rm -r /usr/d; \
    echo new >/usr/n; echo new >/workspace/n";
const READ: &str = "cd /workspace; cat f hard soft ~/h /usr/r; stat -c '%u:%g %a' /usr/d/x f; \
    stat -c %Y ~/h; ls /workspace; ls /usr/n /usr/bin/uname 2>/dev/null; echo .";
/// Writes, and says what is read then.
async fn written(bench: &Bench<'_>, spec: &BoxSpec) -> Result<String, Broken> {
    bench.expect(spec, WRITE, "").await?;
    let read = bench.exec(spec, &["sh", "-c", READ]).await?;
    claim!(
        read.code == 0 && read.stdout.starts_with("kept\nkept\nkept\nkept\nkept\n"),
        "what was written reads {read:?}"
    );
    Ok(read.stdout)
}

fn ability(runtime: &dyn Runtime) -> Result<&dyn Snapshots, Broken> {
    let none = || Broken::Claim("the engine has no snapshots".to_owned());
    runtime.snapshots().ok_or_else(none)
}

fn label(text: &str) -> Result<Label, Broken> {
    Label::parse(text).map_err(|error| Broken::Claim(error.to_string()))
}

fn named(text: &str, at_ms: i64) -> Result<SnapshotSpec, Broken> {
    Ok(SnapshotSpec {
        label: label(text)?,
        kind: SnapshotKind::Manual,
        at_ms,
    })
}

/// As the host does it: frozen meanwhile where the engine can.
async fn take(runtime: &dyn Runtime, spec: &BoxSpec, text: &str, at_ms: i64) -> Held {
    if let Some(freezer) = runtime.freezer() {
        freezer.freeze(&spec.id).await?;
    }
    let taken = ability(runtime)?
        .take(&spec.id, &named(text, at_ms)?, &Quiet)
        .await;
    if let Some(freezer) = runtime.freezer() {
        freezer.thaw(&spec.id).await?;
    }
    let info = taken?;
    claim!(
        info.label.as_str() == text && info.created_at_ms == at_ms,
        "a snapshot came back as {info:?}"
    );
    Ok(())
}

async fn labels(runtime: &dyn Runtime, spec: &BoxSpec) -> Result<Vec<String>, Broken> {
    let listed = ability(runtime)?.list(&spec.id).await?;
    Ok(listed.iter().map(|info| info.label.to_string()).collect())
}

async fn restore(runtime: &dyn Runtime, bench: &Bench<'_>, spec: &BoxSpec, text: &str) -> Held {
    runtime.stop(&spec.id, GRACE).await?;
    ability(runtime)?
        .restore(&spec.id, &label(text)?, &Quiet)
        .await?;
    bench.start_again(spec).await
}

/// A running box's files come back exactly, as often as asked; a later snapshot is still there.
pub async fn restoring_brings_the_files_back(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let spec = bench.running(Profile::Root).await?;
        let kept = written(&bench, &spec).await?;
        take(runtime, &spec, "before", 1_000).await?;
        bench.expect(&spec, CHANGE, "").await?;
        take(runtime, &spec, "after", 2_000).await?;
        for _ in 0..2 {
            restore(runtime, &bench, &spec, "before").await?;
            bench.expect(&spec, READ, &kept).await?;
            bench.expect(&spec, CHANGE, "").await?;
        }
        restore(runtime, &bench, &spec, "after").await?;
        bench
            .expect(&spec, "cat /workspace/f /usr/n; ls ~", "changed\nnew\n")
            .await?;
        let known = labels(runtime, &spec).await?;
        claim!(known == ["before", "after"], "listed are {known:?}");
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// What cannot be done is refused before anything is touched, and labels are used once.
pub async fn snapshots_that_cannot_be_are_refused(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let snapshots = ability(runtime)?;
        let absent = bench.spec(Profile::Locked);
        let taken = snapshots.take(&absent.id, &named("a", 1)?, &Quiet).await;
        claim!(
            matches!(taken, Err(RuntimeError::NotFound(_))),
            "a snapshot of no box: {taken:?}"
        );
        let spec = bench.running(Profile::Locked).await?;
        bench.expect(&spec, "echo one >/workspace/f", "").await?;
        take(runtime, &spec, "a", 1_000).await?;
        bench.expect(&spec, "echo two >/workspace/f", "").await?;
        let again = snapshots.take(&spec.id, &named("a", 2_000)?, &Quiet).await;
        claim!(refused(&again), "a label twice: {again:?}");
        let runs = snapshots.restore(&spec.id, &label("a")?, &Quiet).await;
        claim!(refused(&runs), "restoring a running box: {runs:?}");
        bench.expect(&spec, "cat /workspace/f", "two\n").await?;
        runtime.stop(&spec.id, GRACE).await?;
        let unknown = snapshots.restore(&spec.id, &label("b")?, &Quiet).await;
        claim!(refused(&unknown), "restoring nothing: {unknown:?}");
        let unknown = snapshots.discard(&spec.id, &label("b")?).await;
        claim!(refused(&unknown), "discarding nothing: {unknown:?}");
        snapshots.discard(&spec.id, &label("a")?).await?;
        let known = labels(runtime, &spec).await?;
        claim!(known.is_empty(), "after it was discarded: {known:?}");
        let gone = snapshots.restore(&spec.id, &label("a")?, &Quiet).await;
        claim!(refused(&gone), "restoring what was discarded: {gone:?}");
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

fn refused<T>(result: &Result<T, RuntimeError>) -> bool {
    matches!(result, Err(RuntimeError::Refused { .. }))
}

/// A removed box's snapshots go with it (B22): its id made again has none.
pub async fn a_removed_box_takes_its_snapshots_along(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let spec = bench.running(Profile::Locked).await?;
        take(runtime, &spec, "a", 1_000).await?;
        runtime.remove(&spec.id).await?;
        runtime.create(&spec).await?;
        let known = labels(runtime, &spec).await?;
        claim!(known.is_empty(), "snapshots of a new box: {known:?}");
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// A clone has the files and an identity of its own; from then on they go apart.
pub async fn a_clone_has_everything_but_the_identity(runtime: &dyn Runtime, image: &str) -> Held {
    const IDENTITY: &str = "cat /etc/machine-id";
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let source = bench.running(Profile::Root).await?;
        let kept = written(&bench, &source).await?;
        take(runtime, &source, "mark", 1_000).await?;
        bench
            .expect(&source, "echo later >/workspace/later", "")
            .await?;
        let clone = bench.spec(Profile::Root);
        let from = |text: Option<Label>| CloneSource {
            id: source.id,
            id_offset: source.id_offset,
            label: text,
        };
        let snapshots = ability(runtime)?;
        let mark = from(Some(label("mark")?));
        snapshots.clone_from(&mark, &clone, &Quiet).await?;
        bench.start_again(&clone).await?;
        bench.expect(&clone, READ, &kept).await?;
        let known = labels(runtime, &clone).await?;
        claim!(known.is_empty(), "a snapshot's clone has {known:?} (B16)");

        runtime.stop(&source.id, GRACE).await?;
        let whole = bench.spec(Profile::Root);
        snapshots.clone_from(&from(None), &whole, &Quiet).await?;
        let again = snapshots.clone_from(&from(None), &whole, &Quiet).await;
        claim!(
            matches!(again, Err(RuntimeError::Exists(_))),
            "a second clone of the same id: {again:?}"
        );
        bench.start_again(&whole).await?;
        bench
            .expect(&whole, "cat /workspace/later", "later\n")
            .await?;
        let known = labels(runtime, &whole).await?;
        claim!(known == ["mark"], "a box's clone has {known:?} (B16)");

        runtime.start(&source).await?;
        let mut identities = Vec::new();
        for spec in [&source, &clone, &whole] {
            identities.push(bench.exec(spec, &["sh", "-c", IDENTITY]).await?.stdout);
        }
        restore(runtime, &bench, &whole, "mark").await?;
        bench.expect(&whole, IDENTITY, &identities[2]).await?;
        identities.sort_unstable();
        identities.dedup();
        let good = |id: &String| id.trim_end().len() == 32;
        claim!(
            identities.len() == 3 && identities.iter().all(good),
            "machine ids (B11): {identities:?}"
        );

        let change = "echo mine >/workspace/f; echo mine >/usr/r; touch /usr/bin/mine";
        bench.expect(&clone, change, "").await?;
        runtime.remove(&clone.id).await?;
        bench.expect(&source, "cat /workspace/f", "kept\n").await?;
        bench
            .expect(
                &source,
                "cat /usr/r; ls /usr/bin/mine 2>&1 | wc -l",
                "kept\n1\n",
            )
            .await
    };
    let result = result.await;
    bench.clear(result).await
}
