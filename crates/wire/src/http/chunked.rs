//! The chunked coding (RFC 9112 section 7.1), read strictly.

use super::fields::{MAX_LENGTH, is_decisive};
use super::head::is_token;

/// Most digits of a chunk size: those of 64 bits.
const MAX_SIZE_DIGITS: u8 = 16;

/// Most bytes of a line's chunk extensions. No client in use sends any; an endless one is an attack (CVE-2023-39326).
const MAX_EXTENSION: u16 = 256;

/// Most bytes of a trailer section, its empty line included: half of a head.
const MAX_TRAILERS: u16 = 8 * 1024;

/// Longest trailer name that has to be told from others: `transfer-encoding`.
const LONGEST_DECISIVE: usize = 17;

/// Follows a chunked body, one state for each place where a byte can stand.
#[derive(Debug)]
pub(super) struct Chunked {
    state: State,
    /// Bytes of the trailer section so far.
    trailers: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size { digits: u8, size: u64 },
    Extension { size: u64, length: u16 },
    SizeEnd { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    TrailerName(Name),
    TrailerValue,
    TrailerEnd,
    LastLf,
    Done,
}

/// The start of a trailer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    start: [u8; LONGEST_DECISIVE],
    length: usize,
}

impl Chunked {
    pub(super) const fn new() -> Self {
        Self {
            state: State::SIZE,
            trailers: 0,
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Bytes of chunk data to come before the next byte of framing.
    pub(super) const fn data_left(&self) -> u64 {
        match self.state {
            State::Data { left } => left,
            _ => 0,
        }
    }

    /// Accounts for chunk data that was moved unseen. `None` if that was more than there is.
    pub(super) fn skip(&mut self, n: u64) -> Option<()> {
        if let State::Data { left } = self.state {
            self.state = State::data(left.checked_sub(n)?);
            return Some(());
        }
        (n == 0).then_some(())
    }

    /// How many of `bytes` belong to the body; `None` if it is broken.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..)
            && let Some(&byte) = rest.first()
        {
            match self.state {
                State::Done => break,
                State::Data { left } => {
                    let data = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    self.state = State::data(left - data as u64);
                    taken += data;
                }
                state => {
                    if state.is_trailers() {
                        self.trailers += 1;
                    }
                    if self.trailers > MAX_TRAILERS {
                        return None;
                    }
                    self.state = state.next(byte)?;
                    taken += 1;
                }
            }
        }
        Some(taken)
    }
}

impl State {
    const SIZE: Self = Self::Size { digits: 0, size: 0 };

    const fn data(left: u64) -> Self {
        if left == 0 { Self::DataCr } else { Self::Data { left } }
    }

    const fn is_trailers(self) -> bool {
        matches!(
            self,
            Self::TrailerName(_) | Self::TrailerValue | Self::TrailerEnd | Self::LastLf
        )
    }

    fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16)?;
                let size = size.checked_mul(16)?.checked_add(u64::from(digit))?;
                if digits == MAX_SIZE_DIGITS || size > MAX_LENGTH {
                    return None;
                }
                Self::Size {
                    digits: digits + 1,
                    size,
                }
            }
            (Self::Size { digits: 1.., size }, b'\r') => Self::SizeEnd { size },
            (Self::Size { digits: 1.., size }, b';') => Self::Extension { size, length: 1 },
            (Self::Extension { size, .. }, b'\r') => Self::SizeEnd { size },
            (Self::Extension { size, length }, _) if length < MAX_EXTENSION && is_text(byte) => Self::Extension {
                size,
                length: length + 1,
            },
            (Self::SizeEnd { size: 0 }, b'\n') => Self::TrailerName(Name::EMPTY),
            (Self::SizeEnd { size }, b'\n') => Self::data(size),
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::SIZE,
            (Self::TrailerName(Name { length: 0, .. }), b'\r') => Self::LastLf,
            (Self::TrailerName(name), _) if is_token(byte) => Self::TrailerName(name.push(byte)),
            (Self::TrailerName(name), b':') if name.length > 0 && !name.is_decisive() => Self::TrailerValue,
            (Self::TrailerValue, b'\r') => Self::TrailerEnd,
            (Self::TrailerValue, _) if is_text(byte) => Self::TrailerValue,
            (Self::TrailerEnd, b'\n') => Self::TrailerName(Name::EMPTY),
            (Self::LastLf, b'\n') => Self::Done,
            _ => return None,
        })
    }
}

impl Name {
    const EMPTY: Self = Self {
        start: [0; LONGEST_DECISIVE],
        length: 0,
    };

    fn push(mut self, byte: u8) -> Self {
        if let Some(place) = self.start.get_mut(self.length) {
            *place = byte;
        }
        self.length += 1;
        self
    }

    fn is_decisive(&self) -> bool {
        self.start.get(..self.length).is_some_and(is_decisive)
    }
}

/// What may stand in an extension or a trailer's value: no control character but the tab.
const fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}
