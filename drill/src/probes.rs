//! Every probe, one a file, in the order of the report.

mod abstract_sockets;
mod allowed_names_only;
mod ca_key_nowhere;
mod capabilities;
mod cgroup_escape;
mod chosen_addresses_only;
mod chosen_ports_only;
mod chroot;
mod clocks;
mod clone_identity;
mod copies_follow_no_link;
mod devices;
mod egress_sockets;
mod exposed_to_loopback;
mod files_outside;
mod flood_connections;
mod flood_names;
mod foreign_namespaces;
mod foreign_processes;
mod fork_bomb;
mod guest_protocol;
mod handles;
mod hard_links;
mod host_environment;
mod host_sockets;
mod id_maps;
mod inherited_descriptors;
mod kernel_files;
mod kernel_interfaces;
mod kernel_keyrings;
mod kernel_tables;
mod limit_cpu;
mod limit_disk;
mod limit_files_in_memory;
mod limit_files_of_all;
mod limit_inodes;
mod limit_memory;
mod limit_open_files;
mod limit_processes;
mod limit_shared_memory;
mod limit_threads;
mod limit_tmp;
mod log_flood;
mod machine_facts;
mod machine_loopback;
mod mounts;
mod names_that_lead_inward;
mod neighbour;
pub(crate) mod nested;
mod network_settings;
mod new_namespaces;
mod no_name_tunnel;
mod no_plain_credential;
mod other_abis;
mod output_flood;
mod overlay_marks;
mod own_placeholder_only;
mod priorities;
mod process_one;
mod process_one_files;
mod proxy_addresses;
mod pull_runs_nothing;
mod raised_limits;
mod remounts;
mod root_file_system;
mod setuid_across_clones;
mod setuid_files;
mod shared_memory;
mod sibling_memory;
mod sibling_network;
mod socket_families;
mod spare;
mod terminal_injection;
mod tls_names;
mod token_nowhere;
mod travel_follows_no_link;
mod udp;
mod undo_follows_no_link;
mod user_ids;

use crate::Probe;

pub(crate) const ALL: &[Probe] = &[
    files_outside::PROBE,
    root_file_system::PROBE,
    handles::PROBE,
    hard_links::PROBE,
    overlay_marks::PROBE,
    copies_follow_no_link::PROBE,
    undo_follows_no_link::PROBE,
    travel_follows_no_link::PROBE,
    pull_runs_nothing::PROBE,
    shared_memory::PROBE,
    sibling_memory::PROBE,
    inherited_descriptors::PROBE,
    host_environment::PROBE,
    foreign_processes::PROBE,
    process_one::PROBE,
    process_one_files::PROBE,
    guest_protocol::PROBE,
    mounts::PROBE,
    remounts::PROBE,
    chroot::PROBE,
    devices::PROBE,
    kernel_files::PROBE,
    machine_facts::PROBE,
    kernel_interfaces::PROBE,
    kernel_keyrings::PROBE,
    clocks::PROBE,
    other_abis::PROBE,
    terminal_injection::PROBE,
    socket_families::PROBE,
    kernel_tables::PROBE,
    new_namespaces::PROBE,
    foreign_namespaces::PROBE,
    cgroup_escape::PROBE,
    id_maps::PROBE,
    user_ids::PROBE,
    setuid_files::PROBE,
    setuid_across_clones::PROBE,
    capabilities::PROBE,
    priorities::PROBE,
    raised_limits::PROBE,
    limit_processes::PROBE,
    limit_threads::PROBE,
    fork_bomb::PROBE,
    limit_memory::PROBE,
    limit_files_in_memory::PROBE,
    limit_shared_memory::PROBE,
    limit_cpu::PROBE,
    limit_tmp::PROBE,
    limit_inodes::PROBE,
    limit_disk::PROBE,
    limit_open_files::PROBE,
    limit_files_of_all::PROBE,
    output_flood::PROBE,
    log_flood::PROBE,
    host_sockets::PROBE,
    abstract_sockets::PROBE,
    egress_sockets::PROBE,
    sibling_network::PROBE,
    machine_loopback::PROBE,
    exposed_to_loopback::PROBE,
    network_settings::PROBE,
    chosen_addresses_only::PROBE,
    proxy_addresses::PROBE,
    names_that_lead_inward::PROBE,
    chosen_ports_only::PROBE,
    udp::PROBE,
    no_name_tunnel::PROBE,
    allowed_names_only::PROBE,
    tls_names::PROBE,
    own_placeholder_only::PROBE,
    clone_identity::PROBE,
    no_plain_credential::PROBE,
    token_nowhere::PROBE,
    ca_key_nowhere::PROBE,
    flood_connections::PROBE,
    flood_names::PROBE,
];

/// Those that mean something when the attacker is root of a container in the box. Left out are acts such
/// a root is meant to have (mounts and namespaces of its own, which `nested` has probes for) and what
/// does not depend on who asks.
pub(crate) const FROM_WITHIN: &[Probe] = &[
    files_outside::PROBE,
    handles::PROBE,
    hard_links::PROBE,
    overlay_marks::PROBE,
    foreign_processes::PROBE,
    process_one::PROBE,
    process_one_files::PROBE,
    remounts::PROBE,
    devices::PROBE,
    kernel_files::PROBE,
    machine_facts::PROBE,
    kernel_interfaces::PROBE,
    kernel_keyrings::PROBE,
    clocks::PROBE,
    terminal_injection::PROBE,
    socket_families::PROBE,
    kernel_tables::PROBE,
    cgroup_escape::PROBE,
    user_ids::PROBE,
    priorities::PROBE,
    raised_limits::PROBE,
    host_sockets::PROBE,
    abstract_sockets::PROBE,
    egress_sockets::PROBE,
    network_settings::PROBE,
    chosen_addresses_only::PROBE,
    allowed_names_only::PROBE,
    token_nowhere::PROBE,
    ca_key_nowhere::PROBE,
    limit_processes::PROBE,
    limit_memory::PROBE,
];

#[cfg(test)]
mod tests {
    use super::{ALL, nested};
    use std::collections::BTreeSet;

    #[test]
    fn every_probe_has_a_name_of_its_own() {
        let all = || ALL.iter().chain(nested::ALL);
        let names: BTreeSet<&str> = all().map(|probe| probe.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(ALL.len() >= 60, "{} probes", ALL.len());
    }
}
