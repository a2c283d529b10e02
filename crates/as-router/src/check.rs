//! `as-router --check`: is the allowlist right, what does it mean, and what would become of a name?

mod report;

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use allowlist::{Diagnostics, HostName, NameError};

use crate::cli::{CheckArgs, CheckFormat};
use crate::policy::{LoadError, Policy, load};
use report::{Explanation, Report};

/// Exit status when the command line, not the file, is wrong (as for every other usage error).
const USAGE: u8 = 2;

/// Runs the check and prints its result.
pub(crate) fn run(file: &Path, args: &CheckArgs) -> ExitCode {
    let mut questions = Vec::new();
    for text in &args.names {
        match question(text) {
            Ok(question) => questions.push(question),
            Err(error) => {
                let shown: String = text.escape_default().collect();
                let _ = writeln!(std::io::stderr(), "as-router: {shown:?} is no name to check: {error}");
                return ExitCode::from(USAGE);
            }
        }
    }
    let checked = load(file).and_then(|(allowlist, warnings)| Ok((Policy::new(allowlist)?, warnings)));
    let (policy, warnings) = match checked {
        Ok(checked) => checked,
        Err(error) => return print_error(file, &error, args.format),
    };
    let explanations: Vec<_> = questions
        .iter()
        .map(|(name, port)| Explanation::of(&policy, name, *port))
        .collect();
    let report = Report::new(file, &policy, &warnings, &explanations);
    let text = match args.format {
        CheckFormat::Json => report.json(),
        CheckFormat::Text => report.text(colour()),
    };
    print(&text);
    if explanations.iter().all(Explanation::is_allowed) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print_error(file: &Path, error: &LoadError, format: CheckFormat) -> ExitCode {
    let none = Diagnostics::default();
    let faults = if let LoadError::Faults(faults) = error {
        faults
    } else {
        &none
    };
    match format {
        CheckFormat::Json => print(&report::json_of_error(file, error, faults)),
        CheckFormat::Text => {
            print(&faults.render(colour()));
            let _ = writeln!(std::io::stderr(), "as-router: {error}");
        }
    }
    ExitCode::FAILURE
}

/// `NAME` or `NAME:PORT` as a person writes it.
fn question(text: &str) -> Result<(HostName, Option<u16>), QuestionError> {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => {
            let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
            let port = port
                .parse()
                .ok()
                .filter(|&port: &u16| digits && port > 0)
                .ok_or(QuestionError::Port)?;
            (name, Some(port))
        }
        None => (text, None),
    };
    Ok((HostName::from_user(name)?, port))
}

#[derive(Debug, thiserror::Error)]
enum QuestionError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the port must be a number from 1 to 65535")]
    Port,
}

/// A reader that has seen enough (`| head`) is no error.
fn print(text: &str) {
    let _ = stdout().lock().write_all(text.as_bytes());
}

/// Colours for a terminal, unless NO_COLOR (no-color.org) says otherwise.
fn colour() -> bool {
    stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_names_with_an_optional_port() {
        let (name, port) = question("Db.Example.:5432").unwrap();
        assert_eq!((name.as_str(), port), ("db.example", Some(5432)));
        assert_eq!(question("a.example").unwrap().1, None);
        for text in [
            "",
            ":22",
            "a.example:",
            "a.example:0",
            "a.example:65536",
            "a.example:+1",
            "10.0.0.1",
            "https://a.example",
        ] {
            assert!(question(text).is_err(), "{text}");
        }
    }
}
