//! What is wrong with an entry, and what its writer meant.

use std::ops::Range;

use crate::diagnostic::{Code, Finding};
use crate::entry::{Rule, Target};
use crate::syntax::{self, PortError};
use crate::{HostName, NameError};

/// Ports of the schemes and service names that people write for them. The web's need no port in an entry.
const SERVICES: &[(&str, Option<&str>)] = &[
    ("http", None),
    ("https", None),
    ("ws", None),
    ("wss", None),
    ("ssh", Some("22")),
    ("git+ssh", Some("22")),
    ("git", Some("9418")),
    ("postgres", Some("5432")),
    ("postgresql", Some("5432")),
    ("mysql", Some("3306")),
    ("redis", Some("6379")),
];

/// Most ports of a range that are written out in the help.
const PORTS_WRITTEN_OUT: u16 = 4;

/// Says what is wrong with an entry that [`syntax::target`] refuses. The range is in bytes of `text`.
pub(crate) fn entry(text: &str) -> Finding {
    let mut finding = blank(text)
        .or_else(|| scheme(text))
        .or_else(|| userinfo(text))
        .or_else(|| ip_literal(text))
        .or_else(|| path(text))
        .or_else(|| brackets(text))
        .or_else(|| wildcard(text))
        .or_else(|| port(text))
        .unwrap_or_else(|| name(text));
    if finding.fix.is_none() {
        finding.fix = guess(text).map(|target| target.to_string());
    }
    if let Some(fix) = &finding.fix {
        finding.help = format!("write `{fix}`: {}", finding.help);
    }
    finding
}

fn blank(text: &str) -> Option<Finding> {
    let trimmed = text.trim();
    if trimmed.len() < text.len() {
        // Only spaces and tabs are blanks of the grammar; a no-break space comes from copying off a page.
        let start = if text.starts_with(char::is_whitespace) {
            0
        } else {
            trimmed.len()
        };
        let message = "an unusual blank stands beside the entry";
        let mut finding = Finding::new(Code::BadCharacter, start..text.len(), message, "use spaces and tabs");
        finding.range.end = start + text.get(start..)?.chars().next()?.len_utf8();
        return Some(finding);
    }
    let at = text.find(char::is_whitespace)?;
    let second = at + text.get(at..)?.find(|c: char| !c.is_whitespace())?;
    let (first_word, rest) = (text.get(..at)?, text.get(second..)?);
    let range = second..text.len();
    if first_word.ends_with(':') || rest.starts_with(':') {
        return Some(Finding::new(
            Code::ExtraText,
            0..text.len(),
            "there are blanks around the colon",
            "host and port belong together",
        ));
    }
    let mut finding = Finding::new(
        Code::ExtraText,
        range,
        "a line holds one entry, and this is a second word",
        "put a second entry on a line of its own, and `#` before a comment",
    );
    if let Some(first) = guess(first_word) {
        let is_entry = |word: &str| word.contains('.') && syntax::target(word).is_some();
        let is_list = rest.split_whitespace().all(is_entry);
        if !is_list {
            finding.fix = Some(format!("{first} # {}", crate::escape::for_terminal(rest.as_bytes())));
            finding.help = "a comment starts with `#`".into();
        } else {
            // Two lines are no corrected line; the guess of both together would be wrong.
            finding.help = format!("write each entry on a line of its own, first `{first}`");
        }
    }
    Some(finding)
}

fn scheme(text: &str) -> Option<Finding> {
    let end = text.find("://")?;
    Some(Finding::new(
        Code::Scheme,
        0..end + "://".len(),
        "an entry is a host name and not a URL",
        "the list allows hosts on ports, whatever the protocol",
    ))
}

fn userinfo(text: &str) -> Option<Finding> {
    let end = text.split('/').next()?.rfind('@')?;
    Some(Finding::new(
        Code::Userinfo,
        0..end + 1,
        "an entry has no user name",
        "the list allows hosts, whoever logs in there",
    ))
}

fn ip_literal(text: &str) -> Option<Finding> {
    let host = authority(text);
    let without_port = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let plain = text.strip_prefix('.').unwrap_or(text);
    if ![text, plain, host, without_port].into_iter().any(syntax::is_ip_literal) {
        return None;
    }
    Some(Finding::new(
        Code::IpLiteral,
        0..text.len(),
        "this is an IP address, or would be read as one",
        "list the host name instead: the sandbox reaches hosts by name only (a name that ends in a number is an address)",
    ))
}

fn path(text: &str) -> Option<Finding> {
    let at = text.find(['/', '?', '\\'])?;
    Some(Finding::new(
        Code::Path,
        at..text.len(),
        "an entry has no path",
        "a host is allowed with all its paths: inside TLS they cannot be seen",
    ))
}

fn brackets(text: &str) -> Option<Finding> {
    let at = text.find(['[', ']'])?;
    Some(Finding::new(
        Code::BadCharacter,
        at..at + 1,
        "host names have no brackets",
        "brackets are for IPv6 addresses, which cannot be listed",
    ))
}

fn wildcard(text: &str) -> Option<Finding> {
    let at = text.find('*')?;
    let (before, after) = text.split_at(at);
    let (message, help) = if before.ends_with(':') {
        (
            "a port cannot be `*`",
            "list each port on a line of its own, `host:port`",
        )
    } else if after.trim_start_matches('*').trim_start_matches('.').is_empty() {
        (
            "there is no entry that allows everything",
            "list the hosts that are needed; the router's log names what was refused",
        )
    } else {
        (
            "`*` has no meaning here",
            "a leading dot allows a name and every name below it; there are no other patterns",
        )
    };
    Some(Finding::new(Code::Wildcard, at..at + 1, message, help))
}

fn port(text: &str) -> Option<Finding> {
    let colon = text.find(':')?;
    let (host, digits) = (text.get(..colon)?, text.get(colon + 1..)?);
    let range = colon + 1..text.len();
    if digits.is_empty() {
        return Some(Finding::new(
            Code::MissingPort,
            colon..text.len(),
            "the port is missing behind the colon",
            "without a port an entry allows ports 80 and 443",
        ));
    }
    if let Some(ports) = ports(digits) {
        return Some(several_ports(host, &ports, digits.contains('-'), range));
    }
    let error = syntax::port(digits).err();
    match error {
        None if host.starts_with('.') => Some(suffix_port(host, digits, colon..text.len())),
        None => None,
        Some(error) => {
            let message = match error {
                PortError::NotANumber => "the port is not a number",
                PortError::LeadingZero => "the port starts with a zero",
                PortError::OutOfRange => "there is no such port",
            };
            let help = "a port is a decimal number from 1 to 65535, without sign or leading zero";
            Some(Finding::new(Code::InvalidPort, range, message, help))
        }
    }
}

fn suffix_port(host: &str, port: &str, range: Range<usize>) -> Finding {
    let name = host.trim_start_matches('.');
    let help = if matches!(port, "80" | "443") {
        "a suffix allows ports 80 and 443 anyway".to_owned()
    } else {
        format!(
            "list each host that is needed, such as `{}`: a forward has one destination",
            crate::escape::for_terminal(format!("host.{name}:{port}").as_bytes())
        )
    };
    Finding::new(Code::SuffixPort, range, "a suffix has no port", help)
}

/// The ports of `443-500` or `80,443`, as text: both ends, or all.
fn ports(digits: &str) -> Option<Vec<&str>> {
    let separators = ['-', ',', '/', ';'];
    let ports: Vec<_> = digits.split(separators).map(str::trim).collect();
    let all_are_numbers = ports.iter().all(|port| syntax::port(port).is_ok());
    (ports.len() > 1 && all_are_numbers).then_some(ports)
}

fn several_ports(host: &str, ports: &[&str], is_range: bool, range: Range<usize>) -> Finding {
    let numbers: Vec<u16> = ports.iter().filter_map(|port| port.parse().ok()).collect();
    let list: Vec<u16> = match numbers.as_slice() {
        [first, last] if is_range && first <= last => {
            (*first..=*last).take(usize::from(PORTS_WRITTEN_OUT) + 1).collect()
        }
        all => all.iter().copied().take(usize::from(PORTS_WRITTEN_OUT) + 1).collect(),
    };
    let mut lines: Vec<String> = list
        .iter()
        .take(usize::from(PORTS_WRITTEN_OUT))
        .map(|port| format!("`{}`", crate::escape::for_terminal(format!("{host}:{port}").as_bytes())))
        .collect();
    if list.len() > lines.len() {
        lines.push("and so on".into());
    }
    let help = format!("write a line for each port that is needed: {}", lines.join(", "));
    Finding::new(Code::PortRange, range, "an entry has one port", help)
}

fn name(text: &str) -> Finding {
    let start = usize::from(text.starts_with('.'));
    let end = text.find(':').unwrap_or(text.len());
    let host = text.get(start..end).unwrap_or_default();
    let error = HostName::from_user(host).err().unwrap_or(NameError::BadCharacter);
    let bad_label = |is_bad: fn(&str) -> bool| {
        let mut at = start;
        for label in host.split('.') {
            if is_bad(label) {
                return at..at + label.len();
            }
            at += label.len() + 1;
        }
        start..end
    };
    let (code, range, help) = match error {
        NameError::Empty | NameError::EmptyLabel | NameError::TrailingDot => (
            Code::EmptyLabel,
            dots(text),
            "labels are separated by one dot, and there is at least one",
        ),
        NameError::LabelTooLong => (
            Code::LabelTooLong,
            bad_label(|label| label.len() > HostName::MAX_LABEL_LEN),
            "no such name can exist (RFC 1035 section 2.3.4)",
        ),
        NameError::TooLong => (
            Code::NameTooLong,
            start..end,
            "no such name can exist (RFC 1035 section 3.1)",
        ),
        NameError::HyphenAtEdge => (
            Code::HyphenAtEdge,
            bad_label(|label| label.starts_with('-') || label.ends_with('-')),
            "a hyphen stands between letters or digits (RFC 952)",
        ),
        NameError::IpLiteral => (
            Code::IpLiteral,
            start..end,
            "list the host name instead: the sandbox reaches hosts by name only",
        ),
        NameError::NotUts46 => (
            Code::NotUts46,
            bad_label(|label| HostName::from_user(label) == Err(NameError::NotUts46)),
            "copy the name from a browser's address bar, or write it in its `xn--` form",
        ),
        NameError::BadCharacter => (
            Code::BadCharacter,
            bad_character(host).map_or(start..end, |range| start + range.start..start + range.end),
            "a name is made of letters, digits, hyphens, underscores and dots",
        ),
    };
    Finding::new(code, range, error.to_string(), help)
}

/// The dots that are too many, or the whole of what is no name.
fn dots(text: &str) -> Range<usize> {
    let double = text.find("..").map(|at| {
        let rest = text.get(at..).unwrap_or_default();
        at..at + (rest.len() - rest.trim_start_matches('.').len())
    });
    double.unwrap_or(0..text.len())
}

fn bad_character(host: &str) -> Option<Range<usize>> {
    let is_bad = |c: char| match c {
        '.' | '-' | '_' => false,
        c if c.is_ascii() => !c.is_ascii_alphanumeric(),
        // UTS 46 maps some characters to ASCII that names cannot have, such as a fullwidth colon.
        c => HostName::from_user(c.encode_utf8(&mut [0; 4])) == Err(NameError::BadCharacter),
    };
    let (at, c) = host.char_indices().find(|&(_, c)| is_bad(c))?;
    Some(at..at + c.len_utf8())
}

/// The host and port of what may be a URL.
fn authority(text: &str) -> &str {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let text = text.trim_start_matches('/');
    let text = text.split(['/', '?', '\\']).next().unwrap_or(text);
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// The entry that was meant, if that is clear. Only ever shown, never used.
fn guess(text: &str) -> Option<Target> {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let joined: String = text.split_whitespace().collect();
    let is_list = text.trim().contains(char::is_whitespace) && !joined.contains(':');
    if is_list {
        return None;
    }
    let quotes = ['"', '\'', '`', '<', '>', '(', ')', ',', ';'];
    let authority = authority(joined.trim_matches(quotes));
    let has_user = joined.contains('@');
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let mut host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    while host.contains("..") {
        host = host.replace("..", ".");
    }
    if let Some(rest) = host.strip_prefix("*.").or_else(|| host.strip_prefix(".*.")) {
        host = format!(".{}", rest.trim_start_matches("*."));
    }
    let service = |name: &str| SERVICES.iter().find(|(service, _)| name.eq_ignore_ascii_case(service));
    let is_suffix = host.starts_with('.');
    let port = match port.map(str::trim) {
        None => scheme.and_then(service).and_then(|&(_, port)| port),
        Some("") => None,
        Some("80" | "443") if scheme.is_some() || is_suffix => None,
        Some(digits) if !digits.bytes().any(|b| b.is_ascii_digit()) => match service(digits) {
            Some(&(_, port)) => port,
            // git's `user@host:path`
            None if has_user && scheme.is_none() => Some("22"),
            None => return None,
        },
        Some(digits) => Some(digits.trim_start_matches('+').trim_start_matches('0')),
    };
    syntax::target(&port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"))).filter(|target| {
        // A suffix that was never written as one is a guess too many.
        target.rule == Rule::Exact || is_suffix
    })
}
