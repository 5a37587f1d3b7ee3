//! The peers, each a process of its own, told to do the same: pass tunnels on, open TLS to one host.

use super::load::{OPENED_HOST, PLAIN_HOST};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const READY_MAX: Duration = Duration::from_mins(1);

/// A proxy that runs.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) at: SocketAddr,
    /// Who signs for [`OPENED_HOST`]; `None`: it opens nothing.
    pub(crate) ca_pem: Option<String>,
    pub(crate) process: Child,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Squid's second process ends with its first when that is asked, not killed.
        let pid = rustix::process::Pid::from_child(&self.process);
        let _asked = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        drop(self.process.wait());
    }
}

fn port(number: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, number).into()
}

fn start(name: &'static str, at: SocketAddr, mut command: Command, log: &Path) -> Peer {
    let log = std::fs::File::create(log).unwrap();
    let process = command
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("could not start {name}: {error}"));
    let begin = Instant::now();
    while TcpStream::connect(at).is_err() {
        assert!(begin.elapsed() < READY_MAX, "{name} did not come up");
        std::thread::yield_now();
    }
    Peer {
        name,
        at,
        ca_pem: None,
        process,
    }
}

pub(crate) fn tinyproxy(folder: &Path) -> Peer {
    let at = port(3131);
    let settings = folder.join("tinyproxy.conf");
    let text = "Port 3131\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 600\nMaxClients 4000\nLogLevel Critical\n";
    std::fs::write(&settings, text).unwrap();
    let mut command = Command::new("tinyproxy");
    command.arg("-d").arg("-c").arg(&settings);
    start("tinyproxy", at, command, &folder.join("tinyproxy.log"))
}

/// A CA as squid takes it: certificate and key in one file.
fn squid_ca(folder: &Path) -> (PathBuf, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let cert_pem = params.self_signed(&key).unwrap().pem();
    let file = folder.join("squid-ca.pem");
    std::fs::write(&file, format!("{cert_pem}{}", key.serialize_pem())).unwrap();
    (file, cert_pem)
}

pub(crate) fn squid(folder: &Path, internet_ca: &Path) -> Peer {
    let at = port(3130);
    let (ca, ca_pem) = squid_ca(folder);
    let leaves = folder.join("squid-leaves");
    let made = Command::new("/usr/lib/squid/security_file_certgen")
        .args(["-c", "-s"])
        .arg(&leaves)
        .args(["-M", "4MB"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let owned = Command::new("chown")
        .args(["-R", "proxy:proxy"])
        .arg(folder)
        .status();
    assert!(owned.unwrap().success());
    let (ca, leaves) = (ca.display(), leaves.display());
    let (top, roots) = (folder.display(), internet_ca.display());
    let text = format!(
        "http_port 127.0.0.1:3130 ssl-bump generate-host-certificates=on cert={ca}\n\
         sslcrtd_program /usr/lib/squid/security_file_certgen -s {leaves} -M 4MB\n\
         tls_outgoing_options cafile={roots}\n\
         acl opened ssl::server_name {OPENED_HOST}\n\
         acl step1 at_step SslBump1\n\
         acl tunnel port 7000\n\
         ssl_bump splice tunnel\n\
         ssl_bump peek step1\n\
         ssl_bump bump opened\n\
         ssl_bump splice all\n\
         http_access allow all\n\
         cache deny all\n\
         access_log none\n\
         cache_log {top}/squid-cache.log\n\
         pid_filename {top}/squid.pid\n\
         coredump_dir {top}\n\
         shutdown_lifetime 0 seconds\n\
         pinger_enable off\n\
         on_unsupported_protocol tunnel all\n"
    );
    let settings = folder.join("squid.conf");
    std::fs::write(&settings, text).unwrap();
    let mut command = Command::new("squid");
    command.arg("-N").arg("-f").arg(&settings);
    let mut peer = start("squid", at, command, &folder.join("squid.log"));
    peer.ca_pem = Some(ca_pem);
    peer
}

pub(crate) fn mitmproxy(folder: &Path, internet_ca: &Path) -> Peer {
    let at = port(3132);
    let settings = folder.join("mitmproxy");
    let program = std::env::var_os("BOX_BENCH_MITMDUMP")
        .expect("`cargo xtask bench egress` says where it is");
    let mut command = Command::new(program);
    command
        .args(["-q", "--listen-host", "127.0.0.1", "--listen-port", "3132"])
        .args([
            "--ignore-hosts",
            &format!("^{}:7000$", PLAIN_HOST.replace('.', "\\.")),
        ])
        .args(["--set", "connection_strategy=lazy", "--set"])
        .arg(format!("confdir={}", settings.display()))
        .arg("--set")
        .arg(format!(
            "ssl_verify_upstream_trusted_ca={}",
            internet_ca.display()
        ));
    let mut peer = start("mitmproxy", at, command, &folder.join("mitmproxy.log"));
    let ca = std::fs::read_to_string(settings.join("mitmproxy-ca-cert.pem"));
    peer.ca_pem = Some(ca.unwrap());
    peer
}
