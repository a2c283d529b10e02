//! Any bytes as an allowlist: no panic, terminal-safe diagnostics, and entries that read back as themselves.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run parse -- -max_total_time=60`

#![no_main]

use allowlist::{Allowlist, Plan, Service};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let parsed = Allowlist::parse(text, "fuzz");
    safe(&parsed.warnings.render(false));
    match parsed.result {
        Err(faults) => {
            assert!(faults.total() > 0);
            safe(&faults.render(false));
            for fault in faults.iter().filter_map(|fault| fault.fix.as_ref()) {
                let again = Allowlist::parse(fault.as_bytes(), "fix");
                assert_eq!(again.result.expect("a fix is an entry").len(), 1, "{fault}");
            }
        }
        Ok(list) => {
            let plan = Plan::new(&list).expect("a small list fits");
            for entry in list.entries() {
                let again = Allowlist::parse(entry.to_string().as_bytes(), "again").result.expect("reads back");
                assert_eq!(again.entries().next().map(ToString::to_string), Some(entry.to_string()));
                assert!(list.decide(entry.name(), Service::Web).is_ok());
                assert!(plan.address(entry.name()).is_loopback());
            }
        }
    }
});

fn safe(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}
