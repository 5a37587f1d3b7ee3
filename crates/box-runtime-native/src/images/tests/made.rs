//! Images made for tests: layers, a configuration and a manifest, and what they are called.

use crate::images::oci::Digest;
use crate::images::oci::manifest::architecture;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write as _;

/// A layer in the making.
pub(super) struct Layer(tar::Builder<Vec<u8>>);

impl Default for Layer {
    fn default() -> Self {
        Self(tar::Builder::new(Vec::new()))
    }
}

impl Layer {
    pub(super) fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(name, tar::EntryType::Regular, content)
    }

    pub(super) fn device(self, name: &str) -> Self {
        self.entry(name, tar::EntryType::Char, b"")
    }

    fn entry(mut self, name: &str, kind: tar::EntryType, content: &[u8]) -> Self {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        self.0.append_data(&mut header, name, content).unwrap();
        self
    }

    pub(super) fn tar(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }
}

/// How layers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    Plain,
    Gzip,
    Zstd,
}

/// A whole image.
pub(super) struct Image {
    pub(super) config: Vec<u8>,
    pub(super) layers: Vec<Vec<u8>>,
    pub(super) manifest: Vec<u8>,
}

impl Image {
    pub(super) fn of(layers: Vec<Layer>, packed: Packed) -> Self {
        let plain: Vec<Vec<u8>> = layers.into_iter().map(Layer::tar).collect();
        let ids: Vec<String> = plain.iter().map(|layer| name(layer)).collect();
        let config = json!({
            "os": "linux", "architecture": architecture(),
            "config": {"Env": ["PATH=/opt/made/bin:/usr/bin", "MADE=yes"], "User": "1000"},
            "rootfs": {"type": "layers", "diff_ids": ids},
        });
        let layers: Vec<Vec<u8>> = plain.iter().map(|layer| pack(layer, packed)).collect();
        let kind = match packed {
            Packed::Plain => "",
            Packed::Gzip => "+gzip",
            Packed::Zstd => "+zstd",
        };
        let kind = format!("application/vnd.oci.image.layer.v1.tar{kind}");
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": described("application/vnd.oci.image.config.v1+json", &config),
            "layers": layers.iter().map(|layer| described(&kind, layer)).collect::<Vec<_>>(),
        });
        Self {
            config,
            layers,
            manifest: manifest.to_string().into_bytes(),
        }
    }

    /// A small one: `/bin/sh` and a file in two layers.
    pub(super) fn small() -> Self {
        let below = Layer::default()
            .file("bin/sh", b"#!")
            .file("etc/gone", b"1")
            .file("etc/changed", b"1");
        let above = Layer::default()
            .file("etc/.wh.gone", b"")
            .file("etc/changed", b"2")
            .device("dev/console");
        Self::of(vec![below, above], Packed::Gzip)
    }
}

pub(super) fn name(content: &[u8]) -> String {
    Digest::of(content).to_string()
}

pub(super) fn described(kind: &str, content: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": name(content), "size": content.len()})
}

fn pack(plain: &[u8], packed: Packed) -> Vec<u8> {
    match packed {
        Packed::Plain => plain.to_vec(),
        Packed::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Packed::Zstd => {
            ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest)
        }
    }
}
