//! What is legal in an allowlist, yet may not be what its writer wants.

use std::collections::HashMap;

use crate::diagnostic::{Code, Finding};
use crate::parse::{entry_range, lines};
use crate::{Allowlist, Diagnostics, Entry, HostName, Rule, hash};

/// The port of ssh.
const SSH: u16 = 22;

/// The warnings about a list, in the order of its lines. `duplicates` are the entries that were left out, each with
/// the line of the same entry before it.
pub(crate) fn warnings(list: &Allowlist, duplicates: &[(Entry, u32)], text: &[u8], file: &str) -> Diagnostics {
    let mut warnings = Diagnostics::new(file);
    if list.is_empty() {
        let finding = Finding::new(
            Code::EmptyList,
            0..0,
            "the list is empty: everything is denied",
            "write one host name on a line, such as `example.com`",
        );
        warnings.push(|| finding.of_file());
        return warnings;
    }
    let mut with_port: HashMap<&HostName, &Entry> = HashMap::new();
    for entry in list.entries().filter(|entry| entry.port().is_some()) {
        with_port.entry(entry.name()).or_insert(entry);
    }
    let mut found: Vec<(&Entry, Finding)> = Vec::new();
    let mut total = duplicates.len();
    found.extend(
        duplicates
            .iter()
            .take(Diagnostics::KEPT)
            .map(|(entry, older)| (entry, duplicate(*older))),
    );
    for entry in list.entries() {
        let findings = [covered(list, &with_port, entry), open_suffix(entry), ssh(entry)];
        for finding in findings.into_iter().flatten() {
            total += 1;
            if total <= duplicates.len() + Diagnostics::KEPT {
                found.push((entry, finding));
            }
        }
    }
    found.sort_by_key(|(entry, _)| entry.line());

    let mut lines = lines(text);
    let mut line = None;
    let more = total - found.len();
    for (entry, mut finding) in found {
        while line.is_none_or(|(number, _)| number < entry.line()) {
            line = lines.next();
            if line.is_none() {
                break;
            }
        }
        let bytes = line.map_or(&b""[..], |(_, bytes)| bytes);
        finding.range = entry_range(bytes);
        warnings.push(|| finding.at(entry.line(), bytes));
    }
    warnings.count_only(more);
    warnings
}

fn finding(code: Code, message: String, help: impl Into<String>) -> Finding {
    Finding::new(code, 0..0, message, help)
}

fn duplicate(older: u32) -> Finding {
    finding(
        Code::Duplicate,
        format!("line {older} has the same entry"),
        "remove one of them",
    )
}

fn covered(list: &Allowlist, with_port: &HashMap<&HostName, &Entry>, entry: &Entry) -> Option<Finding> {
    if entry.port().is_some() {
        return None;
    }
    let name = entry.name().as_str();
    let covering = match entry.rule() {
        Rule::Suffix => list.suffix_above(name),
        Rule::Exact => with_port
            .get(entry.name())
            .copied()
            .or_else(|| list.suffix(name, hash::name(name)))
            .or_else(|| list.suffix_above(name)),
    }?;
    Some(finding(
        Code::Covered,
        format!("line {}, `{covering}`, allows this too", covering.line()),
        format!("remove this line, or the wider one if `{entry}` is all that is needed"),
    ))
}

/// A suffix below which names belong to strangers.
fn open_suffix(entry: &Entry) -> Option<Finding> {
    if entry.rule() == Rule::Exact {
        return None;
    }
    let suffix = psl::suffix(entry.name().as_str().as_bytes())?;
    if suffix.as_bytes().len() != entry.name().as_str().len() {
        return None;
    }
    let (code, who) = match suffix.typ()? {
        psl::Type::Icann => (Code::PublicSuffix, "anyone can register a name"),
        psl::Type::Private => (Code::SharedHosting, "every customer of the host has a name"),
    };
    Some(finding(
        code,
        format!("below `{entry}` {who}, and whoever has one is allowed"),
        "list the names that are needed",
    ))
}

fn ssh(entry: &Entry) -> Option<Finding> {
    (entry.port() == Some(SSH)).then(|| {
        finding(
            Code::Ssh,
            format!("`{entry}` is a full tunnel for whoever can log in there"),
            "ssh forwards any port and carries any data; keep the line only if this host is trusted that far",
        )
    })
}
