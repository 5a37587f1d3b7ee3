//! Pulls and unpacks one image into an empty data folder, for `cargo xtask bench image`.
//!
//! ```text
//! pull_bench <data folder> <image>    as `box image prepare <image>` does it, without a host
//! ```

#![expect(clippy::unwrap_used, reason = "a bench stops at what fails")]

use box_runtime::{Images as _, Progress};
use box_runtime_native::ImageStore;
use std::path::Path;

struct Quiet;

impl Progress for Quiet {
    fn say(&self, _text: &str) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data, image] = arguments.as_slice() else {
        panic!("see the top of the file");
    };
    let store = ImageStore::open(Path::new(data)).unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    tokio.block_on(store.prepare(image, &Quiet)).unwrap();
}
