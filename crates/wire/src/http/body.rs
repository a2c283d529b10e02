//! Where a body ends.

use allowlist::Refusal;

use super::chunked::Chunked;
use super::{BodyLength, Direction};

/// Follows a body to its end. Bytes pass through unaltered: the reader only says how many of them are the body's.
#[derive(Debug)]
pub struct BodyReader {
    direction: Direction,
    state: State,
}

#[derive(Debug)]
enum State {
    /// So many bytes are left.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    /// The chunked coding was broken, or the caller moved more than [`BodyReader::remaining`].
    Broken,
}

impl BodyReader {
    /// For the body of a request.
    #[must_use]
    pub const fn new(length: BodyLength) -> Self {
        Self::with_direction(length, Direction::Request)
    }

    /// For the body of a response. Its only refusal is [`Refusal::MalformedResponse`].
    #[must_use]
    pub const fn for_response(length: BodyLength) -> Self {
        Self::with_direction(length, Direction::Response)
    }

    const fn with_direction(length: BodyLength, direction: Direction) -> Self {
        let state = match length {
            BodyLength::None => State::Length(0),
            BodyLength::Length(length) => State::Length(length),
            BodyLength::Chunked => State::Chunked(Chunked::new()),
            BodyLength::UntilClose => State::UntilClose,
        };
        Self { direction, state }
    }

    /// Takes the next bytes and says how many of them, from the first on, belong to the body. It is fewer than all
    /// only if the body ends there.
    ///
    /// # Errors
    /// [`Refusal::AmbiguousFraming`] for anything that strict chunked coding does not allow; none of `bytes` should
    /// go on then. Every later call fails too.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let taken = match &mut self.state {
            State::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                Some(taken)
            }
            State::Chunked(chunked) => chunked.advance(bytes),
            State::UntilClose => Some(bytes.len()),
            State::Broken => None,
        };
        taken.ok_or_else(|| self.broken())
    }

    /// How many of the next bytes belong to the body whatever they are, so that they can be moved unseen (splice):
    /// the rest of a Content-Length or of a chunk's data, [`u64::MAX`] until close, 0 where the next byte has to be
    /// shown to [`advance`](Self::advance) or the body is done.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        match &self.state {
            State::Length(left) => *left,
            State::Chunked(chunked) => chunked.data_left(),
            State::UntilClose => u64::MAX,
            State::Broken => 0,
        }
    }

    /// Accounts for `n` bytes that the caller moved by itself.
    ///
    /// # Errors
    /// As [`advance`](Self::advance), if `n` is more than [`remaining`](Self::remaining).
    pub fn skip(&mut self, n: u64) -> Result<(), Refusal> {
        let skipped = match &mut self.state {
            State::Length(left) => left.checked_sub(n).map(|rest| *left = rest),
            State::Chunked(chunked) => chunked.skip(n),
            State::UntilClose => Some(()),
            State::Broken => None,
        };
        skipped.ok_or_else(|| self.broken())
    }

    /// Whether the body is complete. Never the case until close.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        match &self.state {
            State::Length(left) => *left == 0,
            State::Chunked(chunked) => chunked.is_done(),
            State::UntilClose | State::Broken => false,
        }
    }

    /// Whether the end of the connection at this point is the end of the body, rather than a truncation (RFC 9112
    /// section 8).
    #[must_use]
    pub const fn may_end(&self) -> bool {
        matches!(self.state, State::UntilClose) || self.is_done()
    }

    fn broken(&mut self) -> Refusal {
        self.state = State::Broken;
        self.direction.refuse(Refusal::AmbiguousFraming)
    }
}
