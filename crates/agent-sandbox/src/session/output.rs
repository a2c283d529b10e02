//! The output of router and forwarder: waited on for `ready`, kept in part for when something goes wrong.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::failure::Cause;
use crate::podman::{Attached, Decoder};

/// How many lines are kept to be quoted: enough for an error and what led to it, short enough for a terminal.
const KEPT_LINES: usize = 8;

/// Longest line that is looked at. Events are far shorter; more would be memory a container can ask for.
const MAX_LINE: usize = 8 << 10;

/// How long a part may take until it is ready. It takes milliseconds; a machine under load takes seconds.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// What the output has told so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Ended,
}

/// A container's output, read in the background until it ends.
#[derive(Debug)]
pub(crate) struct Output {
    state: watch::Receiver<State>,
    last: Arc<Mutex<VecDeque<String>>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    event: &'a str,
}

impl Output {
    /// Reads the output from now on.
    pub(crate) fn follow(attached: Attached) -> Self {
        let (told, state) = watch::channel(State::Starting);
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let lines = Lines {
            part: Vec::new(),
            last: Arc::clone(&last),
        };
        tokio::spawn(read(attached, lines, told));
        Self { state, last }
    }

    /// Waits for the `ready` event.
    ///
    /// # Errors
    /// An output that ended or stayed silent, with its last lines.
    pub(crate) async fn ready(&self) -> Result<(), Cause> {
        let mut state = self.state.clone();
        let told = tokio::time::timeout(READY_LIMIT, state.wait_for(|state| *state != State::Starting)).await;
        match told.map(|told| told.map_or(State::Ended, |state| *state)) {
            Ok(State::Ready) => Ok(()),
            Ok(_) => Err(Cause::EndedEarly(self.last_lines())),
            Err(_) => Err(Cause::NotReady {
                seconds: READY_LIMIT.as_secs(),
                output: self.last_lines(),
            }),
        }
    }

    /// The last lines, if the container has ended meanwhile.
    pub(crate) fn ended(&self) -> Option<Vec<String>> {
        (*self.state.borrow() == State::Ended).then(|| self.last_lines())
    }

    fn last_lines(&self) -> Vec<String> {
        self.last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }
}

async fn read(attached: Attached, mut lines: Lines, told: watch::Sender<State>) {
    let Attached { mut stream, early } = attached;
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 16 << 10];
    let mut bytes: &[u8] = &early;
    loop {
        let mut ready = false;
        if decoder.push(bytes, |_, piece| ready |= lines.push(piece)).is_err() {
            break;
        }
        if ready {
            let _ = told.send(State::Ready);
        }
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => bytes = buffer.get(..count).unwrap_or_default(),
            _ => break,
        }
    }
    let _ = told.send(State::Ended);
}

struct Lines {
    part: Vec<u8>,
    last: Arc<Mutex<VecDeque<String>>>,
}

impl Lines {
    /// Takes a piece of output; `true` if a line in it is the `ready` event.
    fn push(&mut self, piece: &[u8]) -> bool {
        let mut ready = false;
        for byte in piece {
            if *byte == b'\n' {
                ready |= self.line();
            } else if self.part.len() < MAX_LINE {
                self.part.push(*byte);
            }
        }
        ready
    }

    fn line(&mut self) -> bool {
        let line = std::mem::take(&mut self.part);
        if line.trim_ascii().is_empty() {
            return false;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == KEPT_LINES {
            last.pop_front();
        }
        last.push_back(printable(&line));
        serde_json::from_slice(&line).is_ok_and(|Event { event }| event == "ready")
    }
}

/// What a container printed is shown on a terminal: no control character gets there.
pub(crate) fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn frame(payload: &str) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[1, 0, 0, 0], &length[..], payload.as_bytes()].concat()
    }

    async fn follow(early: &str, pieces: &[&str], end: bool) -> (Output, std::os::unix::net::UnixStream) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let stream = tokio::net::UnixStream::from_std(ours).unwrap();
        let early = if early.is_empty() { Vec::new() } else { frame(early) };
        let output = Output::follow(Attached { stream, early });
        let mut writer = theirs.try_clone().unwrap();
        for piece in pieces {
            writer.write_all(&frame(piece)).unwrap();
        }
        if end {
            theirs.shutdown(std::net::Shutdown::Both).unwrap();
        }
        (output, theirs)
    }

    #[tokio::test]
    async fn ready_is_an_event_however_it_is_cut() {
        for (early, pieces) in [
            ("{\"time\":\"x\",\"event\":\"ready\"}\n", &[][..]),
            ("", &["{\"event\":\"re", "ady\",\"mode\":\"router\"}\nmore"]),
            ("{\"event\":\"fault\"}\n", &["{\"event\":\"ready\"}\n"]),
        ] {
            let (output, _theirs) = follow(early, pieces, false).await;
            assert!(output.ready().await.is_ok());
            assert_eq!(output.ended(), None);
        }
    }

    #[tokio::test]
    async fn an_early_end_quotes_the_last_lines_without_control_characters() {
        let (output, _theirs) = follow("", &["one\n\u{1b}]0;x\u{7}two \"ready\"\n"], true).await;
        let Err(Cause::EndedEarly(lines)) = output.ready().await else {
            panic!("it was ready")
        };
        assert_eq!(lines, ["one", "\u{fffd}]0;x\u{fffd}two \"ready\""]);
        assert!(output.ended().is_some());
    }
}
