//! A rig internet, a box-egress process beside it, and the host that feeds it.

use crate::host::Host;
use crate::inside::Inside;
use box_api::BoxId;
use box_api::control::NetPreset;
use box_api::egress::{
    Answer, Binding, Carriage, Configuration, CredentialSpec, HostName, HostPattern, MappedName,
    Policy, Registration, Request,
};
use box_fakes::Rig;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, KeyUsagePurpose};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub(crate) const SECRET: &str = "sk-ant-oat01-S3CRET-real-token-of-the-owner";
pub(crate) const PLACEHOLDER_A: &str = "sk-ant-oat01-PLACEHOLDER-of-box-a-0000000000";
pub(crate) const PLACEHOLDER_B: &str = "sk-ant-oat01-PLACEHOLDER-of-box-b-0000000000";
pub(crate) const CREDENTIAL: &str = "claude:default";

/// The deployment's CA, as the host keeps it.
pub(crate) struct Authority {
    pub(crate) cert_pem: String,
    key_pem: String,
}

pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) authority: Authority,
    pub(crate) egress: Child,
    pub(crate) folder: TempDir,
    pub(crate) rig: Rig,
    boxes: u8,
}

impl World {
    /// Configured, with the credential for `cred.test`, and no box.
    pub(crate) fn start() -> Self {
        let mut world = Self::start_empty();
        world.configure();
        world.add_credential(CREDENTIAL, &["cred.test"], SECRET);
        world
    }

    /// Nothing configured.
    pub(crate) fn start_empty() -> Self {
        let rig = Rig::start().unwrap();
        let folder = TempDir::new().unwrap();
        let socket = box_egress::listen(&folder.path().join("egress.sock")).unwrap();
        let log = std::fs::File::create(folder.path().join("egress.log")).unwrap();
        let egress = Command::new(env!("CARGO_BIN_EXE_box-egress"))
            .args(["--host-uid", "0"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .gid(box_egress::UID)
            .uid(box_egress::UID)
            .spawn()
            .unwrap();
        let host = Host::connect(&folder.path().join("egress.sock"));
        Self {
            host,
            authority: Authority::new(),
            egress,
            folder,
            rig,
            boxes: 0,
        }
    }

    pub(crate) fn configuration(&self) -> Configuration {
        Configuration {
            resolvers: vec![self.rig.resolver_addr()],
            roots_pem: String::new(),
            extra_roots_pem: self.rig.ca_pem().to_owned(),
            ca_cert_pem: Some(self.authority.cert_pem.clone()),
            secure_resolvers: Vec::new(),
            proxy: None,
        }
    }

    /// Also forgets what was resolved before.
    pub(crate) fn configure(&mut self) {
        let configuration = self.configuration();
        assert_eq!(self.configure_as(configuration, b""), Answer::Done);
    }

    /// `login` is for the proxy.
    pub(crate) fn configure_as(&mut self, configuration: Configuration, login: &[u8]) -> Answer {
        let secret = [self.authority.key_pem.as_bytes(), login].concat();
        let request = Request::Configure(configuration);
        self.host.call_with(request, &secret, &[])
    }

    pub(crate) fn add_credential(&mut self, id: &str, hosts: &[&str], secret: &str) {
        let spec = credential(id, hosts);
        let answer = self
            .host
            .call_with(Request::AddCredential(spec), secret.as_bytes(), &[]);
        assert_eq!(answer, Answer::Done);
    }

    /// A box with listeners on 80 and 443.
    pub(crate) fn new_box(&mut self, policy: Policy, bindings: Vec<Binding>) -> Inside {
        self.new_box_with(policy, bindings, Vec::new())
    }

    pub(crate) fn new_box_with(
        &mut self,
        policy: Policy,
        bindings: Vec<Binding>,
        map: Vec<MappedName>,
    ) -> Inside {
        let inside = self.unregistered_box();
        let answer = self.register(&inside, policy, bindings, map);
        assert_eq!(answer, Answer::Done);
        inside
    }

    pub(crate) fn unregistered_box(&mut self) -> Inside {
        self.boxes += 1;
        let id = BoxId::from_random([self.boxes; 10]);
        Inside::start(id, &self.authority.cert_pem, self.rig.ca_pem())
    }

    pub(crate) fn register(
        &mut self,
        inside: &Inside,
        policy: Policy,
        bindings: Vec<Binding>,
        map: Vec<MappedName>,
    ) -> Answer {
        let listeners = inside.listeners();
        let registration = Registration {
            box_id: inside.id,
            policy,
            bindings,
            map,
            logins: Vec::new(),
            listeners,
        };
        let descriptors = inside.descriptors();
        let descriptors: Vec<_> = descriptors.iter().map(std::os::fd::AsFd::as_fd).collect();
        self.host
            .call_with(Request::Register(registration), &[], &descriptors)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("egress.sock")
    }

    /// Everything box-egress wrote to its standard error.
    pub(crate) fn log(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("egress.log")).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Ended by a test, or by this.
        drop(self.egress.kill());
        drop(self.egress.wait());
    }
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let cert_pem = params.self_signed(&key).unwrap().pem();
        Self {
            cert_pem,
            key_pem: key.serialize_pem(),
        }
    }
}

pub(crate) fn name(text: &str) -> HostName {
    HostName::parse(text).unwrap()
}

/// Only what is listed.
pub(crate) fn allow(entries: &[&str]) -> Policy {
    let allow = entries
        .iter()
        .map(|entry| HostPattern::parse(entry).unwrap())
        .collect();
    Policy {
        allow,
        ..Policy::nothing()
    }
}

/// Any public host.
pub(crate) fn open() -> Policy {
    Policy {
        preset: NetPreset::Open,
        ..Policy::nothing()
    }
}

/// A placeholder for the credential at `cred.test`.
pub(crate) fn bound(placeholder: &str) -> Vec<Binding> {
    vec![Binding {
        placeholder: placeholder.to_owned(),
        credential: CREDENTIAL.to_owned(),
        hosts: vec![name("cred.test")],
        github: None,
    }]
}

pub(crate) fn credential(id: &str, hosts: &[&str]) -> CredentialSpec {
    CredentialSpec {
        id: id.to_owned(),
        kind: "claude".into(),
        hosts: hosts.iter().map(|host| name(host)).collect(),
        carried: vec![
            Carriage::Bearer,
            Carriage::Basic,
            Carriage::Header {
                name: "x-api-key".into(),
            },
        ],
    }
}
