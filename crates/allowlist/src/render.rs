//! Diagnostics drawn for people.

use std::fmt;
use std::ops::Deref;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::escape;
use crate::{Diagnostic, Severity};

/// The faults or the warnings of one file, in the order of its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file's name, escaped.
    file: String,
    /// At most [`Self::KEPT`].
    kept: Vec<Diagnostic>,
    total: usize,
}

impl Diagnostics {
    /// How many diagnostics of a file are kept as data; beyond that they are counted. A megabyte of memory at most,
    /// and more than anyone mends in one go.
    pub const KEPT: usize = 1000;

    /// How many are drawn; beyond that they are counted. Some five screens.
    pub const DRAWN: usize = 50;

    pub(crate) fn new(file: &str) -> Self {
        Self {
            file: escape::for_terminal(file.as_bytes()),
            kept: Vec::new(),
            total: 0,
        }
    }

    pub(crate) fn push(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        self.total += 1;
        if self.kept.len() < Self::KEPT {
            self.kept.push(diagnostic());
        }
    }

    /// Counts diagnostics that were not kept.
    pub(crate) const fn count_only(&mut self, more: usize) {
        self.total += more;
    }

    /// How many there are, those that are not kept among them.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.total
    }

    /// The file's name as given to the parser, safe to print.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The drawing: each with its code, place, the offending text underlined, and what to write instead. Lines end
    /// with LF; empty without diagnostics. With `colour`, ANSI sequences.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        // ASCII: log files, CI and old terminals show it too.
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let mut text = String::new();
        for diagnostic in self.kept.iter().take(Self::DRAWN) {
            text.push_str(&renderer.render(&draw(&self.file, diagnostic)));
            text.push_str("\n\n");
        }
        let left = self.total - self.kept.len().min(Self::DRAWN);
        if left > 0 {
            text.push_str(&format!("... and {left} more in {}\n", self.file));
        }
        text
    }
}

fn draw<'a>(file: &'a str, diagnostic: &'a Diagnostic) -> Vec<Group<'a>> {
    let level = match diagnostic.code.severity() {
        Severity::Fault => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .clone()
        .primary_title(&diagnostic.message)
        .id(diagnostic.code.as_str());
    let help = Level::HELP.message(&diagnostic.help);
    let origin = Origin::path(file);
    let excerpt = &diagnostic.excerpt;
    if excerpt.line.is_empty() {
        return vec![Group::with_title(title).element(origin).element(help)];
    }
    let (line, column) = (diagnostic.line as usize, diagnostic.column as usize);
    let snippet = Snippet::source(&excerpt.line)
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(excerpt.span.clone()));
    let before = excerpt.line.get(..excerpt.span.start).unwrap_or_default();
    if before.chars().count() + 1 == column {
        return vec![Group::with_title(title).element(snippet.path(file)).element(help)];
    }
    // The excerpt is clipped or escaped, and its columns are not the file's. Two groups, since within one an excerpt
    // without a path of its own is drawn as one of another file.
    vec![
        Group::with_title(title).element(origin.line(line).char_column(column)),
        Group::with_level(level).element(snippet).element(help),
    ]
}

/// The kept ones.
impl Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.kept
    }
}

/// Without colour.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
