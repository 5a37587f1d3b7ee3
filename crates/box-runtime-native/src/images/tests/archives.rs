//! `file:` archives of layers: OCI layouts and what `docker save` writes, old and new.

use super::made::{Image, Layer, Packed, described, name};
use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

impl Rig {
    fn archive(&self, file: &str, entries: &[(&str, &[u8])]) -> String {
        self.tar(file, |tar| {
            for (name, content) in entries {
                super::file(tar, name, content);
            }
        })
    }
}

fn digits(content: &[u8]) -> String {
    name(content).replace("sha256:", "")
}

type Files = Vec<(String, Vec<u8>)>;

/// The files of an OCI layout.
fn layout(image: &Image) -> Files {
    let mut index = described(
        "application/vnd.oci.image.manifest.v1+json",
        &image.manifest,
    );
    index["annotations"] = json!({"org.opencontainers.image.ref.name": "latest"});
    let index = json!({"schemaVersion": 2, "manifests": [index]});
    let blobs = image.layers.iter().chain([&image.config, &image.manifest]);
    let mut files: Files = blobs
        .map(|blob| (format!("blobs/sha256/{}", digits(blob)), blob.clone()))
        .collect();
    files.push(("index.json".to_owned(), index.to_string().into_bytes()));
    files.push((
        "oci-layout".to_owned(),
        br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
    ));
    files
}

fn borrowed(files: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    files
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_slice()))
        .collect()
}

fn changed(rig: &Rig, info: &ImageInfo) -> String {
    let root = rig.store.root_of(&info.digest).unwrap();
    assert!(!root.join("etc/gone").exists());
    assert!(!root.join("oci-layout").exists() && !root.join("manifest.json").exists());
    fs::read_to_string(root.join("etc/changed")).unwrap()
}

#[test]
fn an_oci_layout_and_both_kinds_of_docker_archives_give_the_same_image() {
    let rig = Rig::new();
    let image = Image::small();
    let files = layout(&image);
    let mut infos = vec![
        rig.prepare(&rig.archive("oci.tar", &borrowed(&files)))
            .unwrap(),
    ];

    // As docker wrote it up to 24: plain tars in folders, the same layer linked.
    let plain: Vec<Vec<u8>> = image
        .layers
        .iter()
        .map(|layer| {
            let mut plain = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(layer.as_slice());
            io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
            plain
        })
        .collect();
    let config = format!("{}.json", digits(&image.config));
    let manifest = json!([{
        "Config": config, "RepoTags": ["app:latest"], "Layers": ["a/layer.tar", "b/layer.tar"],
    }]);
    let old = rig.tar("old.tar", |tar| {
        file(tar, "c/layer.tar", &plain[0]);
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "a/layer.tar", "../c/layer.tar")
            .unwrap();
        file(tar, "b/layer.tar", &plain[1]);
        file(tar, &config, &image.config);
        file(tar, "manifest.json", manifest.to_string().as_bytes());
        file(tar, "repositories", b"{}");
    });
    infos.push(rig.prepare(&old).unwrap());

    // As docker writes it since: both, and the index names what is not there.
    let blob = |content: &[u8]| format!("blobs/sha256/{}", digits(content));
    let manifest = json!([{
        "Config": blob(&image.config), "RepoTags": null,
        "Layers": image.layers.iter().map(|layer| blob(layer)).collect::<Vec<_>>(),
    }]);
    let mut new = files.clone();
    new.retain(|(name, _)| name != "index.json");
    let gone = described("application/vnd.oci.image.index.v1+json", b"not in it");
    let index = json!({"schemaVersion": 2, "manifests": [gone]});
    new.push(("index.json".to_owned(), index.to_string().into_bytes()));
    new.push((
        "manifest.json".to_owned(),
        manifest.to_string().into_bytes(),
    ));
    infos.push(
        rig.prepare(&rig.archive("new.tar", &borrowed(&new)))
            .unwrap(),
    );

    for info in &infos {
        assert_eq!(info.digest, infos[0].digest);
        assert_eq!(changed(&rig, info), "2");
    }
    let env = rig.store.env_of(&infos[0].digest).unwrap();
    assert!(env.contains(&("MADE".to_owned(), "yes".to_owned())));
    assert_eq!(rig.left_over(), 0);
}

#[test]
fn an_archive_may_be_compressed_as_a_whole() {
    let rig = Rig::new();
    let plain = rig.archive("plain.tar", &borrowed(&layout(&Image::small())));
    let bytes = fs::read(rig.tars.path().join("plain.tar")).unwrap();
    let expected = rig.prepare(&plain).unwrap().digest;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&bytes).unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(
        bytes.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    for (file, content) in [("a.tar.gz", gzip.finish().unwrap()), ("a.tar.zst", zstd)] {
        fs::write(rig.tars.path().join(file), content).unwrap();
        let image = plain.replace("plain.tar", file);
        assert_eq!(rig.prepare(&image).unwrap().digest, expected, "{file}");
    }
}

#[test]
fn archives_that_lie_or_lack_something_are_refused_and_nothing_is_kept() {
    let rig = Rig::new();
    let good = layout(&Image::small());
    let why = |file: &str, change: &dyn Fn(&mut Files)| {
        let mut files = good.clone();
        change(&mut files);
        let (why, _) = rig.refusal(&rig.archive(file, &borrowed(&files)));
        assert_eq!(rig.left_over(), 0);
        assert_eq!(rig.runtime.block_on(rig.store.list()).unwrap(), []);
        why.split_once(".tar`: ").unwrap().1.to_owned()
    };
    let image = Image::small();
    let blob = |content: &[u8]| format!("blobs/sha256/{}", digits(content));
    let lacks = why("lacks.tar", &|files| {
        files.retain(|(name, _)| *name != blob(&image.layers[1]));
    });
    assert_eq!(lacks, format!("it lacks `{}`", blob(&image.layers[1])));
    let replace = |files: &mut Files, name: &str, content: &[u8]| {
        let found = files.iter_mut().find(|(known, _)| known == name).unwrap();
        found.1 = content.to_vec();
    };
    let other = Image::of(vec![Layer::default().file("bin/x", b"")], Packed::Gzip);
    let layer = why("layer.tar", &|files| {
        replace(files, &blob(&image.layers[0]), &other.layers[0]);
    });
    assert_eq!(layer, "layer 1 does not hold what its configuration says");
    let config = why("config.tar", &|files| {
        replace(files, &blob(&image.config), &other.config);
    });
    let told = format!(
        "`{}` in it is not what its digest says",
        name(&image.config)
    );
    assert_eq!(config, told);
    let several = why("several.tar", &|files| {
        let one = described(
            "application/vnd.oci.image.manifest.v1+json",
            &image.manifest,
        );
        let index = json!({"schemaVersion": 2, "manifests": [one, one]});
        replace(files, "index.json", index.to_string().as_bytes());
    });
    assert_eq!(several, "it holds several images; save one alone");
    let out = why("out.tar", &|files| {
        let manifest = json!([{"Config": "../../../../etc/passwd", "Layers": []}]);
        files.push((
            "manifest.json".to_owned(),
            manifest.to_string().into_bytes(),
        ));
    });
    assert_eq!(out, "it lacks `../../../../etc/passwd`");
    // The control.
    rig.prepare(&rig.archive("good.tar", &borrowed(&good)))
        .unwrap();
}

#[test]
fn a_link_in_an_archive_leads_to_nothing_outside_it() {
    let rig = Rig::new();
    fs::write(rig.tars.path().join("outside"), b"secret").unwrap();
    let target = rig.tars.path().join("outside");
    let image = rig.tar("link.tar", |tar| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "manifest.json", &target)
            .unwrap();
    });
    let (why, _) = rig.refusal(&image);
    assert!(why.ends_with("it lacks `manifest.json`"), "{why}");
}

#[test]
fn a_root_file_system_stays_one_whatever_files_it_holds() {
    let rig = Rig::new();
    let image = rig.archive("root.tar", &[("usr/bin/x", b""), ("index.json", b"{}")]);
    let info = rig.prepare(&image).unwrap();
    assert!(
        rig.store
            .root_of(&info.digest)
            .unwrap()
            .join("index.json")
            .exists()
    );
}

#[test]
fn what_was_built_here_has_a_name_and_is_replaced_by_building_again() {
    let rig = Rig::new();
    let build = |text: &[u8]| {
        let image = Image::of(vec![Layer::default().file("app", text)], Packed::Gzip);
        let archive = rig.archive("built.tar", &borrowed(&layout(&image)));
        let path = Path::new(archive.strip_prefix("file:").unwrap()).to_owned();
        let made = rig.store.adopt(&path, "app", &Silent);
        let info = rig.runtime.block_on(made).unwrap();
        fs::remove_file(path).unwrap();
        info
    };
    let (why, hint) = rig.refusal("built:app");
    assert_eq!(why, "image `built:app` was not built here");
    assert!(hint.unwrap().starts_with("`box image build"));
    let first = build(b"one");
    assert_eq!(first.image, "built:app");
    // The archive is gone and not needed.
    assert_eq!(rig.prepare("built:app").unwrap(), first);
    let second = build(b"two");
    assert_ne!(second.digest, first.digest);
    assert_eq!(rig.prepare("built:app").unwrap(), second);
}
