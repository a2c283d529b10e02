//! The event log: events are formatted by who reports them and written by a thread of its own, so that a slow reader
//! of stdout never holds up a connection.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::fold::Fold;
use super::{Event, text};

/// Text waiting to be written. A reader that is slower than this loses events, and is told how many.
const MOST_WAITING: usize = 1024 * 1024;

/// Lines are collected this long before a write: one system call for a burst instead of one each.
const COLLECT: Duration = Duration::from_millis(10);

/// How often folded refusals are looked at while there are any.
const FOLD_TICK: Duration = Duration::from_secs(1);

/// Longest wait for a reader of stdout that is stuck.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One JSON object per line, for programs.
    Json,
    /// One readable line per event, for people.
    Text,
}

/// A handle to the log; clones write to the same one.
#[derive(Clone)]
pub(crate) struct EventLog {
    shared: Arc<Shared>,
}

struct Shared {
    format: Format,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    lost: u64,
    fold: Fold,
    /// Something must be out before the process goes on: write without collecting.
    urgent: bool,
    writing: bool,
    /// The writer sleeps until it is told: a notification costs a system call only then.
    asleep: bool,
}

impl EventLog {
    /// Starts the writer thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(format: Format) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            format,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let log = Self {
            shared: Arc::clone(&shared),
        };
        thread::Builder::new()
            .name("events".into())
            .spawn(move || write_out(&shared))?;
        Ok(log)
    }

    /// Reports an event. Never blocks on the reader.
    pub(crate) fn report(&self, event: &Event) {
        let mut state = self.shared.lock();
        if state.fold.admit(event, Instant::now()) {
            state.push(self.shared.format, event);
        }
        self.shared.wake(state);
    }

    /// Reports an event and waits until it is written: somebody waits for it, or the process is about to end.
    pub(crate) fn report_and_flush(&self, event: &Event) {
        let mut state = self.shared.lock();
        state.push(self.shared.format, event);
        self.flush(state);
    }

    /// Writes the counts that are still held back, the last event, and everything that waits.
    pub(crate) fn finish(&self, last: &Event) {
        let mut state = self.shared.lock();
        for event in state.fold.finish() {
            state.push(self.shared.format, &event);
        }
        state.push(self.shared.format, last);
        self.flush(state);
    }

    fn flush(&self, mut state: MutexGuard<'_, State>) {
        state.urgent = true;
        self.shared.changed.notify_all();
        let written = |state: &mut State| !state.waiting.is_empty() || state.writing;
        // On time-out the reader of stdout is stuck; there is nobody to tell.
        let _ = self.shared.changed.wait_timeout_while(state, FLUSH_LIMIT, written);
    }
}

impl Shared {
    /// A poisoned lock cannot be: a panic aborts the process.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, state: MutexGuard<'_, State>) {
        if state.asleep {
            drop(state);
            self.changed.notify_all();
        }
    }
}

impl State {
    fn push(&mut self, format: Format, event: &Event) {
        if self.waiting.len() >= MOST_WAITING {
            self.lost += 1;
            return;
        }
        if self.lost > 0 {
            let lost = std::mem::take(&mut self.lost);
            let message = format!("{lost} events were not written: whoever reads this log is too slow");
            line(
                &mut self.waiting,
                format,
                &Event::Fault {
                    code: "events-lost",
                    message,
                },
            );
        }
        line(&mut self.waiting, format, event);
    }
}

/// The writer thread.
fn write_out(shared: &Shared) {
    let mut batch = Vec::new();
    loop {
        let mut state = shared.lock();
        while state.waiting.is_empty() && !state.urgent {
            state.asleep = true;
            state = if state.fold.is_empty() {
                shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                shared
                    .changed
                    .wait_timeout(state, FOLD_TICK)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            };
            state.asleep = false;
            for event in state.fold.expire(Instant::now()) {
                state.push(shared.format, &event);
            }
        }
        if !state.urgent {
            let calm = |state: &mut State| !state.urgent;
            state = shared
                .changed
                .wait_timeout_while(state, COLLECT, calm)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        std::mem::swap(&mut batch, &mut state.waiting);
        state.urgent = false;
        state.writing = true;
        drop(state);
        // A closed stdout must not end the router: the sandbox still needs it.
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(&batch).and_then(|()| stdout.flush());
        drop(stdout);
        batch.clear();
        batch.shrink_to(64 * 1024);
        shared.lock().writing = false;
        shared.changed.notify_all();
    }
}

fn line(out: &mut Vec<u8>, format: Format, event: &Event) {
    let time = humantime::format_rfc3339_millis(SystemTime::now());
    match format {
        Format::Json => {
            let start = out.len();
            let _ = write!(out, "{{\"time\":\"{time}\",");
            let object = out.len();
            // An Event is a struct of plain fields, and a vector takes every byte.
            if serde_json::to_writer(&mut *out, event).is_err() {
                out.truncate(start);
                return;
            }
            // The event's own opening brace: its fields follow those above.
            out.remove(object);
        }
        Format::Text => {
            let _ = write!(out, "{time} {}", text::Line(event));
        }
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CloseReason, Mode, Protocol};
    use allowlist::HostName;

    #[test]
    fn a_line_is_one_json_object_with_time_first() {
        let event = Event::Close {
            protocol: Protocol::Tls,
            name: HostName::from_wire(b"a.example").unwrap(),
            port: 443,
            upstream: "203.0.113.1:443".parse().unwrap(),
            entry: 3,
            bytes_out: 10,
            bytes_in: 20,
            duration_ms: 5,
            reason: CloseReason::Closed,
        };
        let mut out = b"earlier\n".to_vec();
        line(&mut out, Format::Json, &event);
        let text = String::from_utf8(out).unwrap();
        let json = text.strip_prefix("earlier\n").unwrap();
        assert!(json.starts_with("{\"time\":\"20"), "{json}");
        assert!(json.ends_with("}\n"), "{json}");
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["event"], "close");
        assert_eq!(value["bytes_in"], 20);
        assert_eq!(value["reason"], "closed");
    }

    #[test]
    fn a_full_log_counts_what_it_loses() {
        let mut state = State {
            waiting: vec![0; MOST_WAITING],
            ..State::default()
        };
        let event = Event::Stopped { mode: Mode::Router };
        state.push(Format::Json, &event);
        state.push(Format::Json, &event);
        assert_eq!((state.waiting.len(), state.lost), (MOST_WAITING, 2));
        state.waiting.clear();
        state.push(Format::Json, &event);
        let text = String::from_utf8(state.waiting).unwrap();
        assert!(text.contains("events-lost") && text.contains("2 events"), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
