//! One figure of one work, for all who took part.

use serde::Serialize;

use crate::peers::Contender;
use crate::stats::median;
use crate::works::Work;

/// A line of the table.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Row {
    /// Key of the work
    pub(crate) work: &'static str,
    /// What was done
    pub(crate) title: &'static str,
    /// What was measured
    pub(crate) label: String,
    /// Its unit
    pub(crate) unit: &'static str,
    /// Whether more is better
    pub(crate) more_is_better: bool,
    /// A cell for each who took part, in order
    pub(crate) cells: Vec<Cell>,
}

/// What one contender reached.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Cell {
    /// Name
    pub(crate) name: &'static str,
    /// Every run's value
    pub(crate) runs: Vec<f64>,
    #[serde(skip)]
    who: Contender,
}

impl Cell {
    /// The middle run; NaN if none counted.
    pub(crate) fn median(&self) -> f64 {
        median(&self.runs).unwrap_or(f64::NAN)
    }
}

impl Row {
    /// Nothing measured yet.
    pub(crate) fn new(work: &Work, label: impl Into<String>, unit: &'static str, more_is_better: bool) -> Self {
        Self {
            work: work.key,
            title: work.title,
            label: label.into(),
            unit,
            more_is_better,
            cells: Vec::new(),
        }
    }

    /// One run's value.
    pub(crate) fn add(&mut self, who: Contender, value: Option<f64>) {
        let Some(value) = value else { return };
        match self.cells.iter_mut().find(|cell| cell.who == who) {
            Some(cell) => cell.runs.push(value),
            None => self.cells.push(Cell {
                name: who.name(),
                runs: vec![value],
                who,
            }),
        }
    }

    /// The peer that did best.
    pub(crate) fn best_peer(&self) -> Option<&Cell> {
        let peers = self.cells.iter().filter(|cell| cell.who.is_peer());
        let order = |left: &&Cell, right: &&Cell| left.median().total_cmp(&right.median());
        if self.more_is_better {
            peers.max_by(order)
        } else {
            peers.min_by(order)
        }
    }

    /// What as-router reached.
    pub(crate) fn ours(&self) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.who.is_ours())
    }

    /// Ours as a multiple of the best peer's.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.ours()?.median() / self.best_peer()?.median())
    }

    /// One line for the terminal.
    pub(crate) fn print(&self) {
        let cells: Vec<String> = self
            .cells
            .iter()
            .map(|cell| format!("{} {}", cell.name, number(cell.median())))
            .collect();
        let ratio = self.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2} x"));
        println!(
            "{:<36} {:<22} {:>8}   {}",
            self.title,
            format!("{} ({})", self.label, self.unit),
            ratio,
            cells.join(", ")
        );
    }
}

/// Three significant digits, whole numbers from 100 on.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::works::WORKS;

    fn row(more_is_better: bool) -> Row {
        let mut row = Row::new(WORKS.first().unwrap(), "CPU", "us", more_is_better);
        for (who, value) in [
            (Contender::Router, 50.0),
            (Contender::Nginx, 100.0),
            (Contender::HaProxy, 80.0),
            (Contender::Splice, 10.0),
        ] {
            row.add(who, Some(value));
        }
        row.add(Contender::Direct, None);
        row
    }

    #[test]
    fn the_ratio_is_to_the_best_peer_and_never_to_a_floor() {
        assert_eq!(row(false).ratio(), Some(50.0 / 80.0));
        assert_eq!(row(true).ratio(), Some(0.5));
        assert_eq!(row(false).cells.len(), 4);
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [(0.3333, "0.33"), (12.34, "12.3"), (123.4, "123"), (98_765.4, "98765")] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn the_chart_has_a_bar_for_each_ratio_and_both_colour_schemes() {
        let svg = super::super::chart::ratios(&[row(false), row(true)]);
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains("prefers-color-scheme: dark") && svg.contains("0.62"));
    }
}
