//! Where a head ends, found while its bytes arrive.

use allowlist::Refusal;

use super::{Direction, MAX_HEAD};

/// Finds the end of a head. Every byte is looked at once, however the head is cut into pieces: re-parsing at each
/// read would cost quadratic time (httparse PR #217).
///
/// What no head can contain is refused at the byte that shows it, without waiting for the rest: a first byte that is
/// not HTTP, a first line of another protocol or version, bare CR or LF, control characters, a folded field, and the
/// byte that makes the head longer than [`MAX_HEAD`].
///
/// An empty line before the first line is refused too, although RFC 9112 section 2.2 would have it ignored: it was
/// for clients of the 1990s that sent CRLF after a body.
#[derive(Debug)]
pub struct HeadReader {
    direction: Direction,
    state: State,
    /// Bytes of the head that were looked at.
    seen: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the method of a request, or in the `HTTP/1.` of a response.
    Start,
    /// In the rest of the first line.
    FirstLine,
    /// After CRLF: a field or the empty line.
    LineStart,
    /// In a field.
    Field,
    /// After the CR of a line with text.
    LineEnd,
    /// After the CR of the empty line.
    HeadEnd,
    Done,
}

const RESPONSE_START: &[u8] = b"HTTP/1.";

impl HeadReader {
    /// For the head of a request.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_direction(Direction::Request)
    }

    /// For the head of a response. Its only refusal is [`Refusal::MalformedResponse`].
    #[must_use]
    pub const fn for_response() -> Self {
        Self::with_direction(Direction::Response)
    }

    const fn with_direction(direction: Direction) -> Self {
        Self {
            direction,
            state: State::Start,
            seen: 0,
        }
    }

    /// Looks at what came since the last call. `buf` holds all bytes from the start of the head, those of earlier
    /// calls included, and may go on after its end.
    ///
    /// Returns the length of the head with its empty line once that is there, and the same again when asked again.
    ///
    /// # Errors
    /// The first fault in order of bytes, so that the verdict does not depend on how the bytes were cut.
    pub fn advance(&mut self, buf: &[u8]) -> Result<Option<usize>, Refusal> {
        let within_limit = buf.get(..MAX_HEAD).unwrap_or(buf);
        while let Some(rest) = within_limit.get(self.seen..)
            && let Some(&byte) = rest.first()
            && self.state != State::Done
        {
            if matches!(self.state, State::FirstLine | State::Field) {
                let text = rest.iter().take_while(|&&b| self.is_text(b)).count();
                if text > 0 {
                    self.seen += text;
                    continue;
                }
            }
            self.state = self
                .next(byte, within_limit)
                .map_err(|refusal| self.direction.refuse(refusal))?;
            self.seen += 1;
        }
        if self.state == State::Done {
            return Ok(Some(self.seen));
        }
        if self.seen >= MAX_HEAD {
            return Err(self.direction.refuse(Refusal::HeadTooLarge));
        }
        Ok(None)
    }

    fn next(&self, byte: u8, buf: &[u8]) -> Result<State, Refusal> {
        let line = buf.get(..self.seen).unwrap_or_default();
        match (self.state, byte) {
            (State::Start, _) if self.direction == Direction::Response => match RESPONSE_START.get(self.seen) {
                Some(&expected) if expected == byte => Ok(State::Start),
                None if self.is_text(byte) => Ok(State::FirstLine),
                _ => Err(Refusal::MalformedResponse),
            },
            (State::Start, _) if is_token(byte) => Ok(State::Start),
            // RFC 9113 section 11.6 keeps the method PRI for the first line of the HTTP/2 preface.
            (State::Start, b' ') if line == b"PRI" => Err(Refusal::CleartextHttp2),
            (State::Start, b' ') if self.seen > 0 => Ok(State::FirstLine),
            (State::FirstLine, b'\r') => {
                // HTTP/0.9 and other protocols show themselves here, not at the deadline.
                let known = line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0");
                if known || self.direction == Direction::Response {
                    Ok(State::LineEnd)
                } else {
                    Err(Refusal::MalformedRequest)
                }
            }
            (State::LineStart, b'\r') => Ok(State::HeadEnd),
            // Not a token character: a folded field (RFC 9112 section 5.2), or no field at all.
            (State::LineStart, _) if is_token(byte) => Ok(State::Field),
            (State::Field, b'\r') => Ok(State::LineEnd),
            (State::LineEnd, b'\n') => Ok(State::LineStart),
            (State::HeadEnd, b'\n') => Ok(State::Done),
            _ => Err(Refusal::MalformedRequest),
        }
    }

    /// What may stand in the line being read: visible characters, spaces and obs-text (RFC 9110 section 5.5), and
    /// tabs except in a request line. Not CR, LF, NUL or another control character.
    const fn is_text(&self, byte: u8) -> bool {
        match byte {
            b'\t' => matches!(self.state, State::Field) || matches!(self.direction, Direction::Response),
            b' '..=b'~' | 0x80.. => true,
            _ => false,
        }
    }
}

impl Default for HeadReader {
    fn default() -> Self {
        Self::new()
    }
}

/// A character of a token (RFC 9110 section 5.6.2).
pub(super) const fn is_token(byte: u8) -> bool {
    matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
        || byte.is_ascii_alphanumeric()
}
