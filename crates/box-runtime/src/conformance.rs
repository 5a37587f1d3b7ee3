//! What every engine must do alike, as claims an engine's own tests call.
//!
//! Each claim takes the engine and the digest of an image with a shell and the usual small programs
//! (`sh cat sleep id touch ls kill`), makes boxes of its own and removes them, whether it holds or
//! not. Time limits are the caller's: a test that hangs is ended by its runner.

/// Fails with the text unless the condition holds.
macro_rules! claim {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(Broken::Claim(format!($($text)+)));
        }
    };
}

mod held;
mod session;
mod undo;

use crate::{BoxSpec, Runtime, RuntimeError};
use box_api::control::Profile;
use session::{Bench, Output};
use std::time::Duration;

pub use held::{a_frozen_box_stands_still, limits_change_and_use_is_told};
pub use session::Broken;
pub use undo::{
    a_clone_has_everything_but_the_identity, a_removed_box_takes_its_snapshots_along,
    restoring_brings_the_files_back, snapshots_that_cannot_be_are_refused,
};

/// What a claim gives.
pub type Held = Result<(), Broken>;

/// How long a box may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// `create` is not repeated silently, `start`, `stop` and `remove` are.
pub async fn asking_twice_succeeds_except_for_create(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let spec = bench.spec(Profile::Locked);
    let result = async {
        runtime.create(&spec).await?;
        let again = runtime.create(&spec).await;
        claim!(
            matches!(again, Err(RuntimeError::Exists(id)) if id == spec.id),
            "a second create gave {again:?}"
        );
        let first = runtime.start(&spec).await?;
        claim!(
            first.sockets.is_some() == runtime.sockets().is_some(),
            "sockets of the first start"
        );
        let second = runtime.start(&spec).await?;
        claim!(second.sockets.is_none(), "a second start gave sockets");
        claim!(second.pid == first.pid, "a second start made another box");
        for _ in 0..2 {
            runtime.stop(&spec.id, GRACE).await?;
        }
        for _ in 0..2 {
            runtime.remove(&spec.id).await?;
        }
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// Unknown boxes are told apart from stopped ones, and neither runs a command.
pub async fn unknown_and_stopped_boxes_are_named(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let spec = bench.spec(Profile::Locked);
    let result = async {
        let started = runtime.start(&spec).await;
        claim!(
            matches!(started, Err(RuntimeError::NotFound(_))),
            "start gave {started:?}"
        );
        let executed = bench.exec(&spec, &["true"]).await;
        claim!(
            matches!(executed, Err(Broken::Engine(RuntimeError::NotFound(_)))),
            "exec in an unknown box gave {executed:?}"
        );
        runtime.create(&spec).await?;
        let executed = bench.exec(&spec, &["true"]).await;
        claim!(
            matches!(executed, Err(Broken::Engine(RuntimeError::NotRunning(_)))),
            "exec in a stopped box gave {executed:?}"
        );
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// Workspace and home outlive a stop; `/tmp` does not. What runs is known to `list`.
pub async fn files_outlive_a_stop(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        for profile in [Profile::Locked, Profile::Root] {
            let spec = bench.running(profile).await?;
            let write = "echo kept >/workspace/w && echo kept >~/h && echo gone >/tmp/t";
            bench.expect(&spec, write, "").await?;
            let seen = bench.observe(&spec).await?;
            claim!(
                seen.as_ref().is_some_and(|seen| seen.running),
                "a running box is listed as {seen:?}"
            );
            runtime.stop(&spec.id, GRACE).await?;
            let seen = bench.observe(&spec).await?;
            claim!(
                seen.as_ref()
                    .is_some_and(|seen| !seen.running && seen.pid.is_none()),
                "a stopped box is listed as {seen:?}"
            );
            runtime.start(&spec).await?;
            bench
                .expect(&spec, "cat /workspace/w ~/h; ls /tmp", "kept\nkept\n")
                .await?;
            runtime.remove(&spec.id).await?;
            let seen = bench.observe(&spec).await?;
            claim!(seen.is_none(), "a removed box is listed as {seen:?}");
        }
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// `locked` runs as uid 1020 on a root it cannot change, `root` as uid 0 on one it can and keeps.
pub async fn profiles_are_what_they_say(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let locked = bench.running(Profile::Locked).await?;
        bench
            .expect(&locked, "id -u; id -g", "1020\n1020\n")
            .await?;
        bench
            .expect(&locked, "echo $HOME; pwd", "/home/agent\n/workspace\n")
            .await?;
        let written = bench.exec(&locked, &["sh", "-c", "touch /usr/x"]).await?;
        claim!(written.code != 0, "a locked box changed its root");
        bench
            .expect(
                &locked,
                "touch /tmp/x /run/x /workspace/x ~/x && echo yes",
                "yes\n",
            )
            .await?;

        let root = bench.running(Profile::Root).await?;
        bench
            .expect(&root, "id -u; id -g; echo $HOME", "0\n0\n/root\n")
            .await?;
        bench
            .expect(&root, "echo new >/usr/x && cat /usr/x", "new\n")
            .await?;
        runtime.stop(&root.id, GRACE).await?;
        runtime.start(&root).await?;
        bench.expect(&root, "cat /usr/x", "new\n").await?;
        let elsewhere = bench.exec(&locked, &["sh", "-c", "cat /usr/x"]).await?;
        claim!(
            elsewhere.code != 0,
            "the change of one box is seen in another"
        );
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// Codes as a shell has them, streams apart, arguments untouched, the given environment and folder.
pub async fn commands_run_as_asked(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let spec = bench.running(Profile::Locked).await?;
        let cases: [(&[&str], i32); 5] = [
            (&["true"], 0),
            (&["sh", "-c", "exit 7"], 7),
            (&["/etc/passwd"], 126),
            (&["no-such-program"], 127),
            (&["sh", "-c", "kill -9 $$"], 137),
        ];
        for (command, code) in cases {
            let output = bench.exec(&spec, command).await?;
            claim!(
                output.code == code,
                "{command:?} ended with {} and not {code}",
                output.code
            );
        }
        let output = bench
            .exec(&spec, &["sh", "-c", "echo out; echo err >&2"])
            .await?;
        claim!(
            output == Output::of(0, "out\n", "err\n"),
            "streams: {output:?}"
        );
        let output = bench
            .exec(&spec, &["sh", "-c", "echo \"$1\"", "sh", "a b;$HOME"])
            .await?;
        claim!(output.stdout == "a b;$HOME\n", "arguments: {output:?}");
        bench.expect(&spec, "echo $GIVEN", "with the box\n").await?;
        bench
            .expect(
                &spec,
                "cat /etc/hostname /etc/ssl/certs/ca-certificates.crt",
                "conformance\ngiven\n",
            )
            .await?;
        let changed = bench
            .exec(
                &spec,
                &["sh", "-c", "echo x >/etc/ssl/certs/ca-certificates.crt"],
            )
            .await?;
        claim!(changed.code != 0, "a placed file was changed from inside");
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// Two boxes see nothing of each other's processes and files.
pub async fn boxes_do_not_see_each_other(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let one = bench.running(Profile::Root).await?;
        let other = bench.running(Profile::Root).await?;
        // Runs until its box ends; the mark is found where it should be: the control.
        let sleeper = bench
            .begin(&one, &["sh", "-c", "echo up; exec sleep 31536"])
            .await?;
        claim!(
            sleeper.first_line().await? == "up",
            "the sleeper did not start"
        );
        let look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
        let seen = bench.exec(&one, &["sh", "-c", look]).await?;
        claim!(
            seen.stdout.contains("sleep 31536"),
            "the control sees {seen:?}"
        );
        let seen = bench.exec(&other, &["sh", "-c", look]).await?;
        claim!(
            !seen.stdout.contains("31536"),
            "a neighbour's process is seen: {seen:?}"
        );
        bench
            .expect(&one, "touch /workspace/mine /tmp/mine", "")
            .await?;
        bench
            .expect(&other, "ls /workspace /tmp", "/tmp:\n\n/workspace:\n")
            .await?;
        Ok(())
    };
    let result = result.await;
    bench.clear(result).await
}

/// Dropping a command's far end kills it; the box goes on.
pub async fn a_command_nobody_waits_for_dies(runtime: &dyn Runtime, image: &str) -> Held {
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let spec = bench.running(Profile::Locked).await?;
        let sleeper = bench
            .begin(&spec, &["sh", "-c", "echo $$; exec sleep 31537"])
            .await?;
        let pid = sleeper.first_line().await?;
        bench
            .expect(&spec, &format!("kill -0 {pid} && echo there"), "there\n")
            .await?;
        drop(sleeper);
        // The guest notices within its next turn; the loop ends when it has.
        let gone = format!("while kill -0 {pid} 2>/dev/null; do :; done; echo gone");
        bench.expect(&spec, &gone, "gone\n").await
    };
    let result = result.await;
    bench.clear(result).await
}

/// A limit on processes and on memory holds, and a neighbour answers meanwhile.
pub async fn limits_hold_while_a_neighbour_answers(runtime: &dyn Runtime, image: &str) -> Held {
    const PIDS: u32 = 40;
    const MEMORY: u64 = 64 << 20;
    let mut bench = Bench::new(runtime, image)?;
    let result = async {
        let mut small: BoxSpec = bench.spec(Profile::Locked);
        small.limits.pids = PIDS;
        small.limits.memory_bytes = MEMORY;
        bench.start(&small).await?;
        let neighbour = bench.running(Profile::Locked).await?;

        let fork =
            "i=0; while [ $i -lt 200 ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo all";
        let forked = bench.exec(&small, &["sh", "-c", fork]).await?;
        claim!(
            !forked.stdout.contains("all") || forked.code != 0,
            "200 processes: {forked:?}"
        );
        bench.expect(&neighbour, "echo here", "here\n").await?;
        let forked = bench
            .exec(&neighbour, &["sh", "-c", &fork.replace("60", "0")])
            .await?;
        claim!(
            forked.stdout == "all\n",
            "the control could not fork: {forked:?}"
        );
        runtime.stop(&small.id, Duration::ZERO).await?;
        runtime.start(&small).await?;

        let grow = |doublings: u32| {
            format!(
                "x=12345678 i=0; while [ $i -lt {doublings} ]; do x=$x$x i=$((i+1)); done; echo all"
            )
        };
        let grown = bench.exec(&small, &["sh", "-c", &grow(20)]).await?;
        claim!(
            grown.stdout == "all\n",
            "the control: 8 MiB in 64 MiB: {grown:?}"
        );
        let grown = bench.exec(&small, &["sh", "-c", &grow(26)]).await?;
        claim!(
            grown.stdout != "all\n" && grown.code != 0,
            "512 MiB in 64 MiB: {grown:?}"
        );
        bench.expect(&neighbour, "echo here", "here\n").await?;
        bench
            .expect(&small, "echo still here", "still here\n")
            .await
    };
    let result = result.await;
    bench.clear(result).await
}
