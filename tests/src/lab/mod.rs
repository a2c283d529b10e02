//! The laboratory: a small internet in network namespaces, with real servers, and everything in it bounded in time.
//!
//! ```text
//!   client (the pod)          router                           origin (the internet)
//!   192.0.2.10 ---- session bridge 192.0.2.2 | 198.51.100.2 ---- 198.51.100.1, 203.0.113.0/24 and 2001:db8:1::/64
//!   no other route            no forwarding                    nginx, sshd, postgres, unbound on addresses of its own
//! ```
//!
//! [`sandbox::enter`] first moves the whole run into namespaces of its own, so that nothing it makes can outlive it.

// In here a broken lab is a failed test: the panic message is the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod binary;
pub mod certs;
pub mod clienthello;
pub mod dns;
pub mod http;
pub mod netns;
pub mod process;
pub mod router;
pub mod sandbox;
pub mod servers;
pub mod suite;
pub mod wait;
pub mod world;

pub use netns::Namespace;
pub use process::{Done, Process, run};
pub use router::{Router, RouterSetup};
pub use world::{World, world};
