//! How much processor time a list of a million entries needs to load, to plan and to ask, and how much memory.
//!
//! `cargo run --release -p allowlist --example million`

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use allowlist::{Allowlist, HostName, Plan, Service};

const ENTRIES: u32 = 1_000_000;
const QUESTIONS: u32 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    for number in 0..ENTRIES {
        // One in ten a suffix, ten hosts to a domain, in no order that a table could profit from.
        let spread = number.wrapping_mul(2_654_435_761);
        let dot = if number % 10 == 0 { "." } else { "" };
        writeln!(
            text,
            "{dot}host-{spread:x}.domain-{:x}.example",
            spread % (ENTRIES / 10)
        )?;
    }
    println!("file: {} entries, {} MB", ENTRIES, text.len() / 1_000_000);
    let before = resident_kb()?;

    let start = cpu()?;
    let parsed = Allowlist::parse(text.as_bytes(), "million");
    println!("parse: {:?}, {} warnings", cpu()? - start, parsed.warnings.total());
    let list = parsed.result?;
    println!(
        "  memory: {} MB for {} entries",
        (resident_kb()? - before) / 1000,
        list.len()
    );

    let before = resident_kb()?;
    let start = cpu()?;
    let plan = Plan::new(&list)?;
    println!("plan: {:?}", cpu()? - start);
    println!("  memory: {} MB", (resident_kb()?.saturating_sub(before)) / 1000);

    let start = cpu()?;
    let next = plan.successor(&list)?;
    println!("successor of the same list: {:?}", cpu()? - start);
    drop(next);

    let ten = Allowlist::parse(b".a.example\nb.example\n", "ten").result?;
    for (label, list) in [("million", &list), ("two", &ten)] {
        for name in ["www.host-0.domain-0.example", "www.other.example.net"] {
            let name = HostName::from_wire(name.as_bytes())?;
            let start = cpu()?;
            let allowed = (0..QUESTIONS)
                .filter(|_| list.decide(std::hint::black_box(&name), Service::Web).is_ok())
                .count();
            let each = (cpu()? - start) / QUESTIONS;
            println!("decide in {label}: {each:?} ({name}, allowed {allowed} times)");
        }
    }
    Ok(())
}

/// Time on a processor: other programs do not disturb it as they do wall time.
fn cpu() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = stat.split(' ').next().ok_or("no schedstat")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

fn resident_kb() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)).ok_or("no VmRSS")?;
    Ok(kb.parse()?)
}
