//! What `box image` asks for, and what it says before something goes.

use super::fake_host::FakeHost;
use serde_json::{Value, json};

fn unused(state: &str, downloads_bytes: u64, count: usize) -> Value {
    let image = |number: usize| {
        json!({
            "image": format!("oci:app:{number}"), "digest": "0123456789abcdef",
            "bytes": 1_000_000, "created_at_ms": 0,
        })
    };
    json!({
        "result": "unused_images", "removed": state == "removed", "downloads_bytes": downloads_bytes,
        "images": (1..=count).map(image).collect::<Vec<_>>(),
    })
}

#[test]
fn what_no_box_uses_goes_only_after_a_yes() {
    let host = FakeHost::new();
    let tell = json!({"verb": "image", "ask": "prune", "remove": false});
    let remove = json!({"verb": "image", "ask": "prune", "remove": true});
    host.done(tell.clone(), unused("found", 2_000_000, 2));
    insta::assert_snapshot!(host.run(&["image", "prune"]).whole(), @r"
    exit 2
    --- err
    error: removing 2 images (2.0 MB) and 2.0 MB of downloads needs a yes
    hint: add `--force`
    ");
    host.done(remove.clone(), unused("removed", 0, 1));
    insta::assert_snapshot!(host.run(&["image", "prune", "--force"]).whole(), @r"
    exit 0
    --- err
    removed 1 image (1.0 MB)
    ");
    host.done(tell, unused("found", 0, 0));
    insta::assert_snapshot!(host.run(&["image", "prune"]).whole(), @r"
    exit 0
    --- err
    every image is used by a box, and no download was left
    ");
    host.done(remove, unused("removed", 5, 0));
    let said = host.run(&["image", "prune", "--force", "--json"]);
    let said: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        said,
        json!({"images": [], "downloads_bytes": 5, "removed": true})
    );
}

#[test]
fn an_image_is_looked_up_again_only_when_that_is_asked() {
    let host = FakeHost::new();
    let ready = json!({
        "result": "image", "image": "oci:alpine:latest", "digest": "0123456789abcdef",
        "bytes": 3_000_000, "created_at_ms": 0,
    });
    let again = json!({"verb": "image", "ask": "refresh", "image": "oci:alpine"});
    host.done(again, ready);
    let said = host.run(&["image", "prepare", "--refresh", "oci:alpine"]);
    insta::assert_snapshot!(said.whole(), @r"
    exit 0
    --- err
    image `oci:alpine:latest` is ready (3.0 MB)
    ");
}

#[test]
fn nothing_to_build_is_told_before_anything_is_done() {
    let host = FakeHost::new();
    insta::assert_snapshot!(host.run(&["image", "build", "nowhere"]).whole(), @r"
    exit 2
    --- err
    error: there is no `nowhere`
    cause: No such file or directory (os error 2)
    ");
}
