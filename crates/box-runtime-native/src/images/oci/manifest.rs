//! Manifests and configurations of images, OCI's and docker's (image specification; distribution,
//! *Image Manifest Version 2, Schema 2*). What was read is checked here; past this there is only
//! what can be unpacked.

use super::digest::Digest;
use serde::Deserialize;

/// Largest manifest (registries take up to 4 MiB: distribution specification, *Pushing Manifests*)
/// and largest configuration, bytes.
pub(in crate::images) const DOCUMENT_BYTES_MAX: u64 = 4 << 20;
/// Docker itself stops at 127.
pub(in crate::images) const LAYERS_MAX: usize = 512;
/// All layers together as they are sent, bytes.
const PACKED_BYTES_MAX: u64 = 32 << 30;
/// All variables together, bytes.
const ENV_BYTES_MAX: usize = 64 << 10;

/// What is asked for, the plainest first.
pub(super) const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

/// Content: what it is called by and how long it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::images) struct Descriptor {
    pub(in crate::images) digest: Digest,
    pub(in crate::images) bytes: u64,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::images) struct Manifest {
    pub(in crate::images) config: Descriptor,
    /// The lowest first.
    pub(in crate::images) layers: Vec<Descriptor>,
}

/// What a manifest's address gave.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::images) enum Document {
    Image(Manifest),
    /// The image for this machine, out of many.
    Elsewhere(Descriptor),
}

/// What an image says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::images) struct Config {
    /// The digest of each layer's plain tar, the lowest first.
    pub(in crate::images) layers: Vec<Digest>,
    /// Its variables. User, command and working folder mean nothing to a box.
    pub(in crate::images) env: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    media_type: String,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    manifests: Option<Vec<RawDescriptor>>,
    fs_layers: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<Platform>,
}

#[derive(Debug, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: String,
}

#[derive(Debug, Deserialize)]
struct RawConfig {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    config: Option<RawSettings>,
    rootfs: RawRoot,
}

#[derive(Debug, Default, Deserialize)]
struct RawSettings {
    #[serde(rename = "Env", default)]
    env: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct RawRoot {
    #[serde(default)]
    diff_ids: Option<Vec<String>>,
}

/// This machine's architecture as images name it.
pub(in crate::images) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// # Errors
/// Why this is no image for this machine, for a person.
pub(in crate::images) fn document(text: &[u8]) -> Result<Document, String> {
    let raw: Raw = serde_json::from_slice(text)
        .map_err(|error| format!("its manifest cannot be read: {error}"))?;
    match (raw.config, raw.layers, raw.manifests) {
        (_, _, Some(manifests)) => choose(&manifests).map(Document::Elsewhere),
        (Some(config), Some(layers), None) => image(&config, &layers).map(Document::Image),
        _ if raw.fs_layers.is_some() => {
            Err("its manifest is of the first kind there was (schema 1)".to_owned())
        }
        _ => Err(format!(
            "its manifest is of no known kind `{}`",
            raw.media_type
        )),
    }
}

fn image(config: &RawDescriptor, layers: &[RawDescriptor]) -> Result<Manifest, String> {
    let known = [
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.docker.container.image.v1+json",
        "",
    ];
    if !known.contains(&config.media_type.as_str()) {
        return Err(format!(
            "it is no image of a machine but `{}`",
            config.media_type
        ));
    }
    if layers.len() > LAYERS_MAX {
        return Err(format!("it has more than {LAYERS_MAX} layers"));
    }
    let config = descriptor(config)?;
    if config.bytes > DOCUMENT_BYTES_MAX {
        return Err(format!(
            "its configuration has more than {DOCUMENT_BYTES_MAX} bytes"
        ));
    }
    let layers = layers
        .iter()
        .map(|layer| {
            if is_tar(&layer.media_type) {
                descriptor(layer)
            } else {
                Err(format!("it has a layer of kind `{}`", layer.media_type))
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    let packed = layers
        .iter()
        .fold(0_u64, |sum, layer| sum.saturating_add(layer.bytes));
    if packed > PACKED_BYTES_MAX {
        return Err(format!(
            "its layers have more than {PACKED_BYTES_MAX} bytes"
        ));
    }
    Ok(Manifest { config, layers })
}

/// How it is compressed is told by its first bytes.
fn is_tar(kind: &str) -> bool {
    let tar = kind
        .strip_suffix("+gzip")
        .or_else(|| kind.strip_suffix("+zstd"))
        .or_else(|| kind.strip_suffix(".gzip"))
        .or_else(|| kind.strip_suffix(".zstd"))
        .unwrap_or(kind);
    [
        "application/vnd.oci.image.layer.v1.tar",
        "application/vnd.oci.image.layer.nondistributable.v1.tar",
        "application/vnd.docker.image.rootfs.diff.tar",
        "application/vnd.docker.image.rootfs.foreign.diff.tar",
    ]
    .contains(&tar)
}

fn descriptor(raw: &RawDescriptor) -> Result<Descriptor, String> {
    let shown: String = raw.digest.chars().take(80).collect();
    let digest = Digest::parse(&raw.digest)
        .ok_or_else(|| format!("its manifest has `{shown}` for a digest"))?;
    Ok(Descriptor {
        digest,
        bytes: raw.size,
    })
}

/// The image for this machine. One without a platform is taken when it is the only one.
fn choose(manifests: &[RawDescriptor]) -> Result<Descriptor, String> {
    if let [RawDescriptor { platform: None, .. }] = manifests {
        return descriptor(&manifests[0]);
    }
    let here = architecture();
    let fits = |one: &&RawDescriptor| {
        let platform = one.platform.as_ref();
        platform.is_some_and(|found| found.os == "linux" && found.architecture == here)
    };
    // Without a variant it runs on every machine of the architecture, else the lowest does best.
    let variant = |one: &&RawDescriptor| one.platform.as_ref().map(|found| found.variant.clone());
    match manifests.iter().filter(fits).min_by_key(variant) {
        Some(chosen) => descriptor(chosen),
        None => Err(format!("there is none of it for linux/{here}")),
    }
}

/// # Errors
/// Why this is no configuration of an image for this machine with so many layers.
pub(in crate::images) fn config(text: &[u8], layers: usize) -> Result<Config, String> {
    let raw: RawConfig = serde_json::from_slice(text)
        .map_err(|error| format!("its configuration cannot be read: {error}"))?;
    let here = architecture();
    let os = if raw.os.is_empty() { "linux" } else { &raw.os };
    if os != "linux" || (!raw.architecture.is_empty() && raw.architecture != here) {
        return Err(format!(
            "it is for {os}/{}, and this machine is linux/{here}",
            raw.architecture
        ));
    }
    let ids = raw.rootfs.diff_ids.unwrap_or_default();
    if ids.len() != layers {
        return Err(format!(
            "it has {layers} layers, and its configuration tells of {}",
            ids.len()
        ));
    }
    let ids = ids
        .iter()
        .map(|id| Digest::parse(id).ok_or("its configuration has what is no digest"))
        .collect::<Result<_, _>>()?;
    let env = raw.config.unwrap_or_default().env.unwrap_or_default();
    if env.iter().map(String::len).sum::<usize>() > ENV_BYTES_MAX {
        return Err(format!(
            "its environment has more than {ENV_BYTES_MAX} bytes"
        ));
    }
    Ok(Config {
        layers: ids,
        env: env.iter().filter_map(|line| variable(line)).collect(),
    })
}

/// What is no variable of exec(2) is left out, as docker does.
fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let plain = !name.is_empty() && !line.contains('\0');
    plain.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(document: &Value) -> Result<Document, String> {
        super::document(document.to_string().as_bytes())
    }

    fn digest(digit: char) -> String {
        format!("sha256:{}", digit.to_string().repeat(64))
    }

    fn one(kind: &str, digit: char) -> Value {
        json!({"mediaType": kind, "digest": digest(digit), "size": 7})
    }

    fn manifest(config: &str, layer: &str) -> Value {
        json!({"schemaVersion": 2, "config": one(config, '1'), "layers": [one(layer, '2')]})
    }

    const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

    #[test]
    fn both_kinds_of_images_are_read_and_other_things_named() {
        let expected = Document::Image(Manifest {
            config: Descriptor {
                digest: Digest::parse(&digest('1')).unwrap(),
                bytes: 7,
            },
            layers: vec![Descriptor {
                digest: Digest::parse(&digest('2')).unwrap(),
                bytes: 7,
            }],
        });
        assert_eq!(told(&manifest(CONFIG, LAYER)).unwrap(), expected);
        let docker = manifest(
            "application/vnd.docker.container.image.v1+json",
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
        );
        assert_eq!(told(&docker).unwrap(), expected);
        let zstd = manifest(CONFIG, "application/vnd.oci.image.layer.v1.tar+zstd");
        assert_eq!(told(&zstd).unwrap(), expected);

        let refused = |document: Value| told(&document).unwrap_err();
        assert_eq!(
            refused(manifest("application/vnd.cncf.helm.config.v1+json", LAYER)),
            "it is no image of a machine but `application/vnd.cncf.helm.config.v1+json`"
        );
        assert_eq!(
            refused(manifest(CONFIG, &format!("{LAYER}+encrypted"))),
            format!("it has a layer of kind `{LAYER}+encrypted`")
        );
        assert_eq!(
            refused(json!({"schemaVersion": 1, "fsLayers": []})),
            "its manifest is of the first kind there was (schema 1)"
        );
        assert_eq!(
            refused(json!({"mediaType": "x"})),
            "its manifest is of no known kind `x`"
        );
        let mut bad = manifest(CONFIG, LAYER);
        bad["layers"][0]["digest"] = json!("sha256:../../x");
        assert_eq!(
            refused(bad),
            "its manifest has `sha256:../../x` for a digest"
        );
        let mut big = manifest(CONFIG, LAYER);
        big["layers"] = json!([one(LAYER, '2'), one(LAYER, '3')]);
        big["layers"][1]["size"] = json!(u64::MAX);
        assert!(refused(big).starts_with("its layers have more than"));
        let many: Vec<Value> = (0..=LAYERS_MAX).map(|_| one(LAYER, '2')).collect();
        let many = json!({"config": one(CONFIG, '1'), "layers": many});
        assert_eq!(refused(many), "it has more than 512 layers");
    }

    #[test]
    fn of_many_images_this_machines_plainest_is_chosen() {
        let entry = |os: &str, arch: &str, variant: &str, digit: char| {
            let mut entry = one("", digit);
            entry["platform"] = json!({"os": os, "architecture": arch, "variant": variant});
            entry
        };
        let here = architecture();
        let index = json!({"manifests": [
            entry("unknown", "unknown", "", '1'),
            entry("windows", here, "", '2'),
            entry("linux", "s390x", "", '3'),
            entry("linux", here, "v3", '4'),
            entry("linux", here, "", '5'),
        ]});
        let chosen = |index: &Value| match told(index).unwrap() {
            Document::Elsewhere(chosen) => chosen.digest.to_string(),
            other @ Document::Image(_) => panic!("{other:?}"),
        };
        assert_eq!(chosen(&index), digest('5'));
        assert_eq!(chosen(&json!({"manifests": [one("", '6')]})), digest('6'));
        let none = json!({"manifests": [entry("linux", "s390x", "", '3')]});
        assert_eq!(
            told(&none).unwrap_err(),
            format!("there is none of it for linux/{here}")
        );
    }

    #[test]
    fn a_configuration_gives_variables_and_the_digests_of_plain_layers() {
        let text = json!({
            "os": "linux", "architecture": architecture(),
            "config": {"Env": ["PATH=/a:/b", "EMPTY=", "odd", "=x", "A=b=c"], "User": "1000"},
            "rootfs": {"type": "layers", "diff_ids": [digest('1')]},
        });
        let read = config(text.to_string().as_bytes(), 1).unwrap();
        let env: Vec<(&str, &str)> = read
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(env, [("PATH", "/a:/b"), ("EMPTY", ""), ("A", "b=c")]);
        assert_eq!(read.layers[0].to_string(), digest('1'));

        let refused =
            |text: &Value, layers| config(text.to_string().as_bytes(), layers).unwrap_err();
        assert_eq!(
            refused(&text, 2),
            "it has 2 layers, and its configuration tells of 1"
        );
        let mut other = text.clone();
        other["architecture"] = json!("s390x");
        let here = architecture();
        assert_eq!(
            refused(&other, 1),
            format!("it is for linux/s390x, and this machine is linux/{here}")
        );
        let mut long = text;
        long["config"]["Env"] = json!([format!("A={}", "x".repeat(ENV_BYTES_MAX))]);
        assert_eq!(
            refused(&long, 1),
            "its environment has more than 65536 bytes"
        );
        let scratch = json!({"rootfs": {"type": "layers"}});
        assert_eq!(
            config(scratch.to_string().as_bytes(), 0).unwrap(),
            Config {
                layers: Vec::new(),
                env: Vec::new()
            }
        );
    }
}
