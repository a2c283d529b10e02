//! The framing of an attached container without a terminal: stdout and stderr on one connection.
//!
//! Each frame is `[stream, 0, 0, 0, length as 4 bytes big-endian]` and the payload (Docker Engine API, "Attach to a
//! container", stream format, which podman speaks too). Payloads are passed on as they come: no length is trusted
//! with an allocation.

/// Which output a payload belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("podman sent output of the unknown stream {0}")]
pub(crate) struct Malformed(u8);

const HEADER: usize = 8;

/// Splits the bytes of a connection into payloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    header: Vec<u8>,
    payload: Option<(Stream, usize)>,
}

impl Decoder {
    /// Takes the next bytes of the connection and hands every piece of payload in them to `take`.
    ///
    /// # Errors
    /// A frame of a stream that no container has.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(Stream, &[u8])) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            let Some((stream, left)) = self.payload else {
                let wanted = (HEADER - self.header.len()).min(bytes.len());
                let (head, rest) = bytes.split_at(wanted);
                self.header.extend_from_slice(head);
                bytes = rest;
                if let [id, _, _, _, a, b, c, d] = self.header.as_slice() {
                    let length = u32::from_be_bytes([*a, *b, *c, *d]);
                    self.payload = Some((stream_of(*id)?, length as usize));
                    self.header.clear();
                }
                continue;
            };
            let (piece, rest) = bytes.split_at(left.min(bytes.len()));
            if !piece.is_empty() {
                take(stream, piece);
            }
            bytes = rest;
            self.payload = (left > piece.len()).then_some((stream, left - piece.len()));
        }
        Ok(())
    }

    /// Whether the connection may end here: a frame cut short means that output was lost.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.header.is_empty() && self.payload.is_none_or(|(_, left)| left == 0)
    }
}

fn stream_of(id: u8) -> Result<Stream, Malformed> {
    match id {
        // Docker's 0 is an echo of standard input; no podman sends it, and it would be output.
        0 | 1 => Ok(Stream::Stdout),
        2 => Ok(Stream::Stderr),
        other => Err(Malformed(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(id: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&[id, 0, 0, 0], &length[..], payload].concat()
    }

    #[test]
    fn an_unknown_stream_is_an_error_and_no_panic() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(&frame(3, b"x"), |_, _| {}), Err(Malformed(3)));
    }

    #[test]
    fn a_huge_length_allocates_nothing() {
        let mut decoder = Decoder::default();
        let mut got = Vec::new();
        let bytes = [&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], &b"abc"[..]].concat();
        decoder.push(&bytes, |_, piece| got.extend_from_slice(piece)).unwrap();
        assert_eq!(got, b"abc");
        assert!(!decoder.is_between_frames());
    }

    proptest! {
        /// However the connection cuts the bytes, both outputs come out whole and in order.
        #[test]
        fn any_cut_gives_the_same_outputs(
            frames in prop::collection::vec((1u8..3, prop::collection::vec(any::<u8>(), 0..40)), 0..12),
            cuts in prop::collection::vec(1usize..30, 0..60),
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|(id, payload)| frame(*id, payload)).collect();
            let want = |wanted: u8| -> Vec<u8> {
                frames.iter().filter(|(id, _)| *id == wanted).flat_map(|(_, payload)| payload.clone()).collect()
            };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut decoder = Decoder::default();
            let mut rest = &bytes[..];
            for cut in cuts.into_iter().chain(std::iter::once(usize::MAX)) {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                decoder.push(now, |stream, piece| match stream {
                    Stream::Stdout => out.extend_from_slice(piece),
                    Stream::Stderr => err.extend_from_slice(piece),
                }).unwrap();
                rest = later;
            }
            prop_assert!(decoder.is_between_frames());
            prop_assert_eq!(out, want(1));
            prop_assert_eq!(err, want(2));
        }
    }
}
