//! box-egress by itself, as tests and benches start it: the same as `box egress`, without the
//! rest of `box`. The control socket is standard input; see the library.

use box_egress::{Options, RunError, run};

fn main() -> Result<(), RunError> {
    let mut arguments = std::env::args().skip(1);
    let host_uid = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--host-uid"), Some(uid)) => uid.parse().unwrap_or_default(),
        _ => 0,
    };
    let build = env!("CARGO_PKG_VERSION").to_owned();
    run(Options::from_standard_input(host_uid, build).map_err(RunError::Control)?)
}
