//! HTTP as box-egress passes it on: on port 80, and inside TLS that it opened up.

pub(crate) mod body;
pub(crate) mod gate;
pub(crate) mod head;
pub(crate) mod headers;
pub(crate) mod leash;
pub(crate) mod relay;
pub(crate) mod request;
pub(crate) mod serve;
pub(crate) mod upgrade;
pub(crate) mod upstream;
