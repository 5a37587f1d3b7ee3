//! An internet with two hosts, box-egress with one box, and the peers beside it.

use super::client::Client;
use super::inside::Inside;
use super::load::{self, Addresses, OPENED_HOST, PLAIN_HOST, Route};
use super::origin;
use super::peers::{Peer, mitmproxy, squid, tinyproxy};
use super::process::{cpu_seconds, resident_bytes, to_f64};
use super::rows::Found;
use super::world::{PLACEHOLDER_A, SECRET, World, allow, bound};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command};
use tempfile::TempDir;

const IDLE_TUNNELS: usize = 500;
const GIB: f64 = 1_073_741_824.0;

pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    who: Who,
}

enum Who {
    Nobody,
    BoxEgress,
    Peer(Peer),
}

pub(crate) struct Stage {
    pub(crate) contestants: Vec<Contestant>,
    addresses: Addresses,
    inside: Inside,
    origin: Child,
    _folder: TempDir,
    world: World,
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.origin.kill());
        drop(self.origin.wait());
    }
}

impl Stage {
    pub(crate) fn set() -> Self {
        box_fakes::rig::private_mounts().unwrap();
        let mut world = World::start();
        let plain = world.rig.origin(PLAIN_HOST).address;
        let opened = world.rig.origin(OPENED_HOST).address;
        let addresses = Addresses { plain, opened };
        let mut origin = Command::new(std::env::current_exe().unwrap());
        origin.arg(origin::WORD);
        let origin = world.rig.start(origin).unwrap();
        let listed = format!("{PLAIN_HOST}:{}", origin::PORT);
        let inside = world.new_box(allow(&[&listed]), bound(PLACEHOLDER_A));
        let folder = TempDir::new().unwrap();
        let contestants = Self::contestants(&folder, &world, addresses);
        Self {
            contestants,
            addresses,
            inside,
            origin,
            _folder: folder,
            world,
        }
    }

    /// The peers look names up in a file of their own, as box-egress has them in its memory.
    fn contestants(folder: &TempDir, world: &World, addresses: Addresses) -> Vec<Contestant> {
        let at = folder.path();
        std::fs::set_permissions(at, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let hosts = at.join("hosts");
        let names = format!(
            "127.0.0.1 localhost\n{} {PLAIN_HOST}\n{} {OPENED_HOST}\n",
            addresses.plain, addresses.opened
        );
        std::fs::write(&hosts, names).unwrap();
        let bound = Command::new("mount")
            .arg("--bind")
            .arg(&hosts)
            .arg("/etc/hosts")
            .status();
        assert!(bound.unwrap().success());
        let ca = at.join("internet-ca.pem");
        std::fs::write(&ca, world.rig.ca_pem()).unwrap();
        let peers = [tinyproxy(at), squid(at, &ca), mitmproxy(at, &ca)];
        let own = [("direct", Who::Nobody), ("box-egress", Who::BoxEgress)];
        own.into_iter()
            .chain(peers.into_iter().map(|peer| (peer.name, Who::Peer(peer))))
            .map(|(name, who)| Contestant { name, who })
            .collect()
    }

    pub(crate) fn measure(&self, number: usize) -> Found {
        let contestant = &self.contestants[number];
        let mut found = Found::new();
        let before = self.cpu(contestant);
        let addresses = self.addresses;
        let (bytes, seconds) = self.client(contestant, move |route| load::bulk(route, addresses));
        let cpu = self.cpu(contestant) - before;
        found.push(("gbit_s", to_f64(bytes) * 8.0 / seconds / 1e9));
        if self.pid(contestant).is_some() {
            found.push(("cpu_s_per_gib", cpu / (to_f64(bytes) / GIB)));
        }
        let times = self.client(contestant, move |route| load::connects(route, addresses));
        found.push(("p50_us", times[times.len() / 2]));
        found.push(("p99_us", times[times.len() * 99 / 100]));
        let busy = self.client(contestant, move |route| load::busy(route, addresses));
        found.push(("connects_s", busy));
        found.extend(self.opened(contestant));
        found
    }

    fn opened(&self, contestant: &Contestant) -> Found {
        let (trusted, secret) = match &contestant.who {
            Who::Nobody => (self.world.rig.ca_pem().to_owned(), SECRET),
            Who::BoxEgress => (self.world.authority.cert_pem.clone(), PLACEHOLDER_A),
            Who::Peer(peer) => match &peer.ca_pem {
                Some(ca_pem) => (ca_pem.clone(), SECRET),
                None => return Found::new(),
            },
        };
        let before = self.cpu(contestant);
        let addresses = self.addresses;
        let authorization = format!("Bearer {secret}");
        let (answered, seconds) = self.client(contestant, move |route| {
            let client = Client::new(&trusted);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let asked = load::requests(&client, route, addresses, &authorization);
            runtime.unwrap().block_on(asked)
        });
        let cpu = self.cpu(contestant) - before;
        let mut found = vec![("requests_s", to_f64(answered) / seconds)];
        if self.pid(contestant).is_some() {
            found.push(("cpu_us_per_request", cpu * 1e6 / to_f64(answered)));
        }
        found
    }

    pub(crate) fn idle(&self, number: usize) -> Found {
        let contestant = &self.contestants[number];
        let Some(pid) = self.pid(contestant) else {
            return Found::new();
        };
        let addresses = self.addresses;
        let before = resident_bytes(pid);
        let tunnels = self.client(contestant, move |route| {
            load::silent(route, addresses, IDLE_TUNNELS)
        });
        let grown = resident_bytes(pid).saturating_sub(before);
        drop(tunnels);
        vec![(
            "kib_per_idle_tunnel",
            to_f64(grown) / 1024.0 / to_f64(IDLE_TUNNELS as u64),
        )]
    }

    /// Does something where the contestant's clients are.
    fn client<T: Send + 'static>(
        &self,
        contestant: &Contestant,
        doing: impl FnOnce(Route) -> T + Send + 'static,
    ) -> T {
        match &contestant.who {
            Who::Nobody => doing(Route::Direct),
            Who::Peer(peer) => doing(Route::Proxy(peer.at)),
            Who::BoxEgress => {
                let at: SocketAddr = (Ipv4Addr::LOCALHOST, 3128).into();
                // A thread of its own: a program in a box is no task among others either.
                self.inside.run(move |_| async move {
                    std::thread::spawn(move || doing(Route::Proxy(at)))
                        .join()
                        .unwrap()
                })
            }
        }
    }

    fn pid(&self, contestant: &Contestant) -> Option<u32> {
        match &contestant.who {
            Who::Nobody => None,
            Who::BoxEgress => Some(self.world.egress.id()),
            Who::Peer(peer) => Some(peer.process.id()),
        }
    }

    fn cpu(&self, contestant: &Contestant) -> f64 {
        self.pid(contestant).map_or(0.0, cpu_seconds)
    }
}
