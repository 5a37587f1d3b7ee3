//! Tests of installing a pack, against a registry in a network namespace of the test's own thread.

use super::super::test_registry::{Answer, Registry, package, tarball};
use super::*;
use std::fs;

fn pack(packages: Vec<Package>) -> Pack {
    Pack {
        agent: "test".to_owned(),
        version: "1.0.0".to_owned(),
        folder: "1.0.0-abc".to_owned(),
        packages,
    }
}

fn left_over(data: &Path) -> usize {
    fs::read_dir(data.join("tmp")).unwrap().count()
}

#[test]
fn a_pack_comes_out_whole_readable_and_described() {
    let registry = Registry::start();
    let a = tarball(&[("package/package.json", b"{}"), ("package/lib/x.js", b"x")]);
    let b = tarball(&[("other-name/index.js", b"b")]);
    registry.answer("/a/-/a-1.0.0.tgz", [Answer::ok(&a)]);
    registry.answer("/@s/b/-/b-1.0.0.tgz", [Answer::ok(&b)]);
    let mut nested = package("@s/b", &b);
    nested.path = "node_modules/a/node_modules/@s/b".to_owned();
    nested.programs = vec!["index.js".to_owned(), "missing.js".to_owned()];
    let pack = pack(vec![package("a", &a), nested]);
    let data = tempfile::tempdir().unwrap();
    let place = registry
        .with_fetcher(|fetcher| install(&pack, data.path(), fetcher))
        .unwrap();

    assert_eq!(place, data.path().join("agents/test/1.0.0-abc"));
    let read = |path: &str| fs::read(place.join(path)).unwrap();
    assert_eq!(read("node_modules/a/lib/x.js"), b"x");
    assert_eq!(read("node_modules/a/node_modules/@s/b/index.js"), b"b");
    for folder in [
        "",
        "node_modules",
        "node_modules/a",
        "node_modules/a/node_modules/@s/b",
    ] {
        let mode = fs::metadata(place.join(folder))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755, "{folder}");
    }
    let mode = |path: &str| fs::metadata(place.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("node_modules/a/node_modules/@s/b/index.js"), 0o755);
    assert_eq!(mode("node_modules/a/lib/x.js"), 0o644);
    let manifest: serde_json::Value = serde_json::from_slice(&read("pack.json")).unwrap();
    assert_eq!(manifest["packages"][0], "@s/b@1.0.0");
    assert_eq!(left_over(data.path()), 0);
}

#[test]
fn one_wrong_package_refuses_the_whole_pack_and_nothing_stays() {
    let registry = Registry::start();
    let good = tarball(&[("package/a", b"a")]);
    registry.answer("/a/-/a-1.0.0.tgz", [Answer::ok(&good)]);
    registry.answer("/b/-/b-1.0.0.tgz", [Answer::ok(b"something else")]);
    let pack = pack(vec![package("a", &good), package("b", &good)]);
    let data = tempfile::tempdir().unwrap();
    let result = registry.with_fetcher(|fetcher| install(&pack, data.path(), fetcher));
    let error = result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`b@1.0.0` is not what the lock file names: its SHA-512 differs"
    );
    assert!(error.hint().unwrap().ends_with("nothing was installed"));
    assert_eq!(left_over(data.path()), 0);
    assert!(!data.path().join("agents/test/1.0.0-abc").exists());
}

#[test]
fn a_package_that_wants_out_of_its_folder_is_refused() {
    let registry = Registry::start();
    let evil = tarball(&[("package/../../../evil", b"x")]);
    registry.answer("/a/-/a-1.0.0.tgz", [Answer::ok(&evil)]);
    let pack = pack(vec![package("a", &evil)]);
    let data = tempfile::tempdir().unwrap();
    let result = registry.with_fetcher(|fetcher| install(&pack, data.path(), fetcher));
    assert_eq!(
        result.unwrap_err().to_string(),
        "could not unpack `a@1.0.0`: entry `package/../../../evil` has `..` in its name"
    );
    assert_eq!(left_over(data.path()), 0);
}

#[test]
fn two_at_once_install_once() {
    let registry = Registry::start();
    let content = tarball(&[("package/a", b"a")]);
    registry.answer("/a/-/a-1.0.0.tgz", [Answer::ok(&content)]);
    let pack = pack(vec![package("a", &content)]);
    let data = tempfile::tempdir().unwrap();
    let run = || registry.with_fetcher(|fetcher| install(&pack, data.path(), fetcher));
    std::thread::scope(|scope| {
        let other = scope.spawn(run);
        assert_eq!(run().unwrap(), other.join().unwrap().unwrap());
    });
    assert_eq!(registry.asked().len(), 1);
}

#[tokio::test]
async fn a_built_in_agent_needs_nothing_and_what_is_installed_is_found_without_asking() {
    struct Nothing;
    impl Progress for Nothing {
        fn say(&self, text: &str) {
            panic!("{text}");
        }
    }
    let data = tempfile::tempdir().unwrap();
    let demo = crate::agents::find("demo").unwrap();
    assert_eq!(ensure(demo, data.path(), &Nothing).await.unwrap(), None);

    let claude = crate::agents::find("claude").unwrap();
    assert_eq!(installed(claude, data.path()), None);
    let folder = Pack::of(claude).unwrap().unwrap().folder;
    let place = data.path().join("agents/claude").join(folder);
    fs::create_dir_all(&place).unwrap();
    assert_eq!(
        ensure(claude, data.path(), &Nothing).await.unwrap(),
        Some(place)
    );
}
