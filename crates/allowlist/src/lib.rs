//! The policy language of agent-sandbox: which names a sandbox may reach.
//!
//! Pure: bytes in, verdicts out. No sockets, no clock, no file system. Every part of the system that has to know
//! whether something is allowed (DNS, TLS, HTTP, forwards, `--check`, the launcher) asks this crate and nothing else.

mod address;
mod diagnose;
mod diagnostic;
mod entry;
mod escape;
mod hash;
mod list;
mod name;
mod parse;
mod place;
mod plan;
mod refusal;
mod render;
mod syntax;
mod warn;

pub use address::{AddressPolicy, Network, NetworkError};
pub use diagnostic::{Code, Diagnostic, Severity};
pub use entry::{Entry, Rule};
pub use list::{Allowed, Allowlist, Service};
pub use name::{HostName, NameError};
pub use parse::Parsed;
pub use plan::{Forward, Plan, PlanError};
pub use refusal::Refusal;
pub use render::Diagnostics;
