//! Whole-system tests and the lab they run in.
