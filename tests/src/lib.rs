//! Whole-system tests and the lab they run in.

pub mod lab;
