//! The policy language of agent-sandbox: which names a sandbox may reach.
//!
//! Pure: bytes in, verdicts out. No sockets, no clock, no file system. Every part of the system that has to know
//! whether something is allowed (DNS, TLS, HTTP, forwards, `--check`, the launcher) asks this crate and nothing else.

mod address;
mod name;
mod refusal;

pub use address::{AddressPolicy, Network, NetworkError};
pub use name::{HostName, NameError};
pub use refusal::Refusal;
