//! The results as Markdown.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use super::Race;
use super::row::number;
use crate::growth::Point;

const VERSIONS: [(&str, &str); 5] = [
    ("nginx", "-v"),
    ("haproxy", "-v"),
    ("sniproxy", "-V"),
    ("dnsmasq", "-v"),
    ("socat", "-V"),
];

/// A table of all rows.
pub(super) fn race(race: &Race) -> String {
    let mut text = format!("# Race of {}\n\n", race.date);
    let accounting = race.accounting.unwrap_or("none");
    let _ = writeln!(
        text,
        "Medians of {} runs of {} s, in turn. CPU time by {accounting}.\n",
        race.runs, race.seconds
    );
    for line in &race.machine {
        let _ = writeln!(text, "- {line}");
    }
    text.push_str("\n| work | figure | as-router | ratio to the best peer | all (median) |\n|---|---|---|---|---|\n");
    for row in &race.rows {
        let ours = row.ours().map_or_else(|| "-".to_owned(), |cell| number(cell.median()));
        let ratio = row
            .ratio()
            .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let others = row
            .cells
            .iter()
            .map(|cell| format!("{} {}", cell.name, number(cell.median())));
        let others = others.collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "| {} | {}, {} | {ours} | {ratio} | {others} |",
            row.title, row.label, row.unit
        );
    }
    text
}

/// A table for each thing that grows.
pub(super) fn growth(date: &str, points: &[Point]) -> String {
    let mut text = format!("# Growth, {date}\n\n");
    for line in machine().iter().take(2) {
        let _ = writeln!(text, "- {line}");
    }
    let mut what = "";
    for point in points {
        if point.what != what {
            what = point.what;
            let names = point
                .figures
                .iter()
                .map(|(name, unit, _)| format!(" {name}, {unit} |"))
                .collect::<String>();
            let _ = writeln!(text, "\n| {what} |{names}\n|---|{}", "---|".repeat(point.figures.len()));
        }
        let values = point
            .figures
            .iter()
            .map(|figure| format!(" {} |", number(figure.2)))
            .collect::<String>();
        let _ = writeln!(text, "| {} |{values}", point.size);
    }
    text
}

/// Processor, kernel, versions.
pub(super) fn machine() -> Vec<String> {
    let first = |text: &str| text.lines().next().unwrap_or_default().trim().to_owned();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut lines = vec![
        format!("processor {}", model.trim_start_matches([' ', '\t', ':'])),
        format!("Linux {}", first(&kernel)),
    ];
    for (program, option) in VERSIONS {
        if let Ok(output) = Command::new(program).arg(option).output() {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            let line = said
                .lines()
                .find(|line| line.contains(|letter: char| letter.is_ascii_digit()));
            lines.push(line.unwrap_or(program).trim().to_owned());
        }
    }
    lines
}
