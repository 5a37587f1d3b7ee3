//! Every probe, one a file, in the order of the report.

mod allowed_names_only;
mod capabilities;
mod chosen_addresses_only;
mod chosen_ports_only;
mod devices;
mod egress_sockets;
mod files_outside;
mod foreign_namespaces;
mod foreign_processes;
mod handles;
mod host_sockets;
mod kernel_files;
mod kernel_interfaces;
mod limit_cpu;
mod limit_memory;
mod limit_open_files;
mod limit_processes;
mod limit_tmp;
mod mounts;
mod neighbour;
mod new_namespaces;
mod no_name_tunnel;
mod no_plain_credential;
mod own_placeholder_only;
mod process_one;
mod root_file_system;
mod shared_memory;
mod sibling_network;
mod socket_families;
mod terminal_injection;
mod token_nowhere;
mod udp;
mod user_ids;

use crate::Probe;

pub(crate) const ALL: &[Probe] = &[
    files_outside::PROBE,
    root_file_system::PROBE,
    handles::PROBE,
    shared_memory::PROBE,
    foreign_processes::PROBE,
    process_one::PROBE,
    mounts::PROBE,
    devices::PROBE,
    kernel_files::PROBE,
    kernel_interfaces::PROBE,
    terminal_injection::PROBE,
    socket_families::PROBE,
    new_namespaces::PROBE,
    foreign_namespaces::PROBE,
    user_ids::PROBE,
    capabilities::PROBE,
    limit_processes::PROBE,
    limit_memory::PROBE,
    limit_cpu::PROBE,
    limit_tmp::PROBE,
    limit_open_files::PROBE,
    host_sockets::PROBE,
    egress_sockets::PROBE,
    sibling_network::PROBE,
    chosen_addresses_only::PROBE,
    chosen_ports_only::PROBE,
    udp::PROBE,
    no_name_tunnel::PROBE,
    allowed_names_only::PROBE,
    own_placeholder_only::PROBE,
    no_plain_credential::PROBE,
    token_nowhere::PROBE,
];

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::collections::BTreeSet;

    #[test]
    fn every_probe_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = ALL.iter().map(|probe| probe.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(ALL.len() >= 25, "{} probes", ALL.len());
    }
}
