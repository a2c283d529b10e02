//! `as-router`: a sandbox's only way out.

fn main() {}
