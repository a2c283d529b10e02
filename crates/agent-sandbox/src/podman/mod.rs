//! Podman's API: the `podman-api` crate where it is right, plain JSON over the same socket where it is not.

mod client;
mod error;
mod frames;
mod inspect;
mod raw;
mod spec;
mod verify;

pub(crate) use client::{Client, Labelled, Subnet};
pub(crate) use error::ApiError;
pub(crate) use frames::{Decoder, Stream};
pub(crate) use raw::Attached;
pub(crate) use spec::{
    Bind, ContainerSpec, Device, Limit, LogConfig, Namespace, NetworkOptions, PodSpec, Resources, Volume,
};
pub(crate) use verify::Differences;
