//! What `--check` prints. The JSON form is documented in `docs/check.md`.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::Path;

use allowlist::{Allowlist, Diagnostics, Entry, HostName, Refusal, Rule, Service};
use serde::Serialize;

use crate::policy::{LoadError, Policy};

/// Ports of every entry.
const WEB_PORTS: [u16; 2] = [80, 443];

/// The whole report on a valid allowlist.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    file: String,
    valid: bool,
    entries: Vec<Row>,
    warnings: Vec<Finding<'a>>,
    faults: Vec<Finding<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    names: &'a [Explanation],
    #[serde(skip)]
    drawn: Option<&'a Diagnostics>,
}

/// What one line of the file means.
#[derive(Serialize)]
struct Row {
    line: u32,
    entry: String,
    name: String,
    subdomains: bool,
    /// Ports that lead to the name.
    ports: Vec<u16>,
    /// `null` for a suffix entry: each name below it has its own.
    address: Option<Ipv4Addr>,
    /// The router's port for the entry's own port.
    router_port: Option<u16>,
}

#[derive(Serialize)]
struct Finding<'a> {
    code: &'static str,
    line: u32,
    column: u32,
    text: &'a str,
    message: &'a str,
    help: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a str>,
}

/// Whether a name gets through, and why.
#[derive(Serialize)]
pub(super) struct Explanation {
    name: String,
    port: Option<u16>,
    allowed: bool,
    /// The line that allows it.
    line: Option<u32>,
    entry: Option<String>,
    address: Option<Ipv4Addr>,
    /// The code of the refusal.
    code: Option<&'static str>,
    reason: String,
}

impl Explanation {
    /// Asks the one function that decides.
    pub(super) fn of(policy: &Policy, name: &HostName, port: Option<u16>) -> Self {
        let service = match port {
            Some(port) if !WEB_PORTS.contains(&port) => Service::Port(port),
            _ => Service::Web,
        };
        let decision = policy.allowlist.decide(name, service);
        let exists = policy.allowlist.decide(name, Service::Name).is_ok();
        let entry = decision.as_ref().ok().map(|allowed| allowed.entry());
        Self {
            name: name.to_string(),
            port,
            allowed: decision.is_ok(),
            line: entry.map(Entry::line),
            entry: entry.map(ToString::to_string),
            address: exists.then(|| policy.plan.address(name)),
            code: decision.as_ref().err().map(|refusal| refusal.code()),
            reason: match &decision {
                Ok(allowed) => format!("allowed by line {}: {}", allowed.entry().line(), allowed.entry()),
                Err(refusal) => denied(&policy.allowlist, name, port, *refusal),
            },
        }
    }

    pub(super) const fn is_allowed(&self) -> bool {
        self.allowed
    }
}

/// What denies a name, and the line that would allow it.
fn denied(allowlist: &Allowlist, name: &HostName, port: Option<u16>, refusal: Refusal) -> String {
    match (refusal, port) {
        (Refusal::PortNotAllowed, Some(port)) => {
            format!("denied: {name} is allowed on ports 80 and 443 only; add the line {name}:{port} for this port")
        }
        _ if allowlist.has_names_below(name) => format!(
            "denied: only names below {name} are allowed; add the line {name} for itself, or .{name} for all of them"
        ),
        (_, Some(port)) if !WEB_PORTS.contains(&port) => {
            format!("denied: no line covers {name}; add the line {name}:{port} to allow it")
        }
        _ => format!("denied: no line covers {name}; add the line {name} to allow it"),
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(file: &Path, policy: &Policy, warnings: &'a Diagnostics, names: &'a [Explanation]) -> Self {
        Self {
            file: file.to_string_lossy().into_owned(),
            valid: true,
            entries: rows(policy),
            warnings: findings(warnings),
            faults: Vec::new(),
            error: None,
            names,
            drawn: Some(warnings),
        }
    }

    pub(super) fn json(&self) -> String {
        // Plain structures of strings and numbers always serialise.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// A table of the entries, or the explanations if names were given; warnings first.
    pub(super) fn text(&self, colour: bool) -> String {
        let mut text = self.drawn.map_or_else(String::new, |warnings| warnings.render(colour));
        if self.names.is_empty() {
            let mut table = vec![["ENTRY", "ADDRESS", "PORTS", "ROUTER PORT", "LINE"].map(str::to_owned)];
            table.extend(self.entries.iter().map(Row::cells));
            draw(&mut text, &table);
            let count = self.entries.len();
            let noun = if count == 1 { "entry" } else { "entries" };
            let _ = writeln!(text, "\n{}: {count} {noun}, no fault", self.file.escape_debug());
        } else {
            for explanation in self.names {
                let port = explanation.port.map_or_else(String::new, |port| format!(":{port}"));
                let _ = writeln!(text, "{}{port}: {}", explanation.name, explanation.reason);
            }
        }
        text
    }
}

/// The JSON report on an allowlist that cannot be used.
pub(super) fn json_of_error(file: &Path, error: &LoadError, faults: &Diagnostics) -> String {
    Report {
        file: file.to_string_lossy().into_owned(),
        valid: false,
        entries: Vec::new(),
        warnings: Vec::new(),
        faults: findings(faults),
        error: Some(error.to_string()),
        names: &[],
        drawn: None,
    }
    .json()
}

fn rows(policy: &Policy) -> Vec<Row> {
    let router_ports: HashMap<u32, u16> = policy
        .plan
        .forwards()
        .iter()
        .map(|forward| (forward.line, forward.router_port))
        .collect();
    let row = |entry: &Entry| row(policy, entry, router_ports.get(&entry.line()).copied());
    policy.allowlist.entries().map(row).collect()
}

fn row(policy: &Policy, entry: &Entry, router_port: Option<u16>) -> Row {
    let mut ports = WEB_PORTS.to_vec();
    ports.extend(entry.port().filter(|port| !WEB_PORTS.contains(port)));
    Row {
        line: entry.line(),
        entry: entry.to_string(),
        name: entry.name().to_string(),
        subdomains: entry.rule() == Rule::Suffix,
        ports,
        address: (entry.rule() == Rule::Exact).then(|| policy.plan.address(entry.name())),
        router_port,
    }
}

impl Row {
    fn cells(&self) -> [String; 5] {
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        [
            self.entry.clone(),
            self.address
                .map_or_else(|| "one per name".to_owned(), |address| address.to_string()),
            ports.join(" "),
            self.router_port.map_or_else(|| "-".to_owned(), |port| port.to_string()),
            self.line.to_string(),
        ]
    }
}

fn findings(diagnostics: &Diagnostics) -> Vec<Finding<'_>> {
    let all = diagnostics.iter().map(|diagnostic| Finding {
        code: diagnostic.code.as_str(),
        line: diagnostic.line,
        column: diagnostic.column,
        text: &diagnostic.text,
        message: &diagnostic.message,
        help: &diagnostic.help,
        fix: diagnostic.fix.as_deref(),
    });
    all.collect()
}

/// Columns padded to their widest cell, two spaces apart.
fn draw<const N: usize>(out: &mut String, table: &[[String; N]]) {
    let width = |column: usize| {
        table
            .iter()
            .filter_map(|row| row.get(column))
            .map(String::len)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<_> = (0..N).map(width).collect();
    for row in table {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}
