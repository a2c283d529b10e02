//! Reassembly of the ClientHello over any number of segments and records.

use super::{ClientHello, Refusal, hello};

/// Longest body of a ClientHello: 64 KiB. The length field allows 2^24 (RFC 8446 section 4); post-quantum key shares,
/// session tickets and padding make real ones 2 to 20 KiB (traefik #12871, envoy #42278).
pub const MAX_HELLO: usize = 64 * 1024;

/// The most bytes after which there is a verdict: each byte of the longest message, header included, in a record of its
/// own. A caller's buffer needs no other limit.
pub const MAX_RECEIVED: usize = (MESSAGE_HEADER + MAX_HELLO) * (RECORD_HEADER + 1);

/// ContentType, legacy_record_version, length (RFC 8446 section 5.1).
const RECORD_HEADER: usize = 5;

/// Longest fragment of a record (RFC 8446 section 5.1). A ClientHello is never encrypted, so the larger limit for
/// ciphertext does not apply.
const MAX_FRAGMENT: usize = 1 << 14;

/// ContentType.handshake.
const HANDSHAKE: u8 = 22;

/// msg_type and the 24-bit length (RFC 8446 section 4).
const MESSAGE_HEADER: usize = 4;

/// HandshakeType.client_hello.
const CLIENT_HELLO: u8 = 1;

/// Finds the ClientHello at the start of a connection.
///
/// Every byte is looked at once, however the bytes are cut into segments; a message within one record is not copied.
/// The verdict depends on the bytes alone, never on how they arrived (CVE-2026-32305 in traefik).
#[derive(Debug, Default)]
pub struct HelloReader {
    /// Bytes of the connection that are dealt with: whole record headers, and fragments as they come in.
    read: usize,
    /// Bytes of the current record's fragment still to come.
    fragment_left: usize,
    /// Bytes of the message so far.
    message_read: usize,
    message_header: [u8; MESSAGE_HEADER],
    /// The message so far, once it goes on in a second record. Empty before that.
    joined: Vec<u8>,
    /// A refusal is final.
    refused: Option<Refusal>,
}

impl HelloReader {
    /// A reader for a new connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at a connection whose first bytes are `received`: all of them since the connection began, not only the new
    /// ones. `Ok(None)` means that more are needed. What follows the last record of the hello is not looked at.
    ///
    /// # Errors
    /// The reason why no more bytes could make this a ClientHello with one clear name, at the first byte that shows it.
    pub fn advance(&mut self, received: &[u8]) -> Result<Option<ClientHello>, Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        self.step(received).inspect_err(|&refusal| self.refused = Some(refusal))
    }

    fn step(&mut self, received: &[u8]) -> Result<Option<ClientHello>, Refusal> {
        loop {
            if let Some(message) = self.message(received) {
                return hello::read(message).map(Some);
            }
            if self.fragment_left == 0 {
                let rest = received.get(self.read..).unwrap_or_default();
                let Some(length) = record_header(rest, self.read == 0)? else {
                    return Ok(None);
                };
                self.begin_record(received, length)?;
            }
            let fragment = received.get(self.read..).unwrap_or_default();
            let fragment = fragment.get(..self.fragment_left).unwrap_or(fragment);
            if fragment.is_empty() {
                return Ok(None);
            }
            self.take(fragment)?;
        }
    }

    /// The body of the message, when it is complete.
    fn message<'a>(&'a self, received: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.message_length()?;
        if self.message_read < MESSAGE_HEADER + length {
            return None;
        }
        let (bytes, start) = if self.joined.is_empty() {
            (received, RECORD_HEADER + MESSAGE_HEADER)
        } else {
            (self.joined.as_slice(), MESSAGE_HEADER)
        };
        bytes.get(start..start + length)
    }

    /// The length of the message's body, once its header has been read.
    fn message_length(&self) -> Option<usize> {
        let [_, high, middle, low] = self.message_header;
        (self.message_read >= MESSAGE_HEADER).then(|| u32::from_be_bytes([0, high, middle, low]) as usize)
    }

    fn begin_record(&mut self, received: &[u8], length: usize) -> Result<(), Refusal> {
        if self.message_read > 0 && self.joined.is_empty() {
            let first_fragment = received.get(RECORD_HEADER..self.read).unwrap_or_default();
            self.joined.extend_from_slice(first_fragment);
        }
        self.check_end(length)?;
        self.read += RECORD_HEADER;
        self.fragment_left = length;
        Ok(())
    }

    fn take(&mut self, fragment: &[u8]) -> Result<(), Refusal> {
        let header_left = self.message_header.iter_mut().skip(self.message_read);
        for (index, (slot, &byte)) in header_left.zip(fragment).enumerate() {
            if self.message_read + index == 0 && byte != CLIENT_HELLO {
                return Err(Refusal::MalformedHello);
            }
            *slot = byte;
        }
        if !self.joined.is_empty() {
            self.joined.extend_from_slice(fragment);
        }
        self.read += fragment.len();
        self.message_read += fragment.len();
        self.fragment_left -= fragment.len();
        if self.message_length().is_some_and(|length| length > MAX_HELLO) {
            return Err(Refusal::HelloTooLarge);
        }
        self.check_end(self.fragment_left)
    }

    /// A record must not go on behind the ClientHello: nothing else may come before the server's answer, and what a
    /// server would make of it is not for us to guess (RFC 8446 section 5.1: messages do not span key changes).
    fn check_end(&self, fragment_left: usize) -> Result<(), Refusal> {
        match self.message_length() {
            Some(length) if self.message_read + fragment_left > MESSAGE_HEADER + length => Err(Refusal::MalformedHello),
            _ => Ok(()),
        }
    }
}

/// The fragment length from the record header at the start of `bytes`, `None` if the header is incomplete but good so
/// far.
fn record_header(bytes: &[u8], first: bool) -> Result<Option<usize>, Refusal> {
    match *bytes {
        [] => return Ok(None),
        [HANDSHAKE, ..] => {}
        _ if !first => return Err(Refusal::InterleavedRecord),
        // An SSLv2 record starts with 15 bits of length under a high bit that is set; MSG-CLIENT-HELLO is 1.
        [0x80..=0xff, _, message, ..] => return Err(if message == 1 { Refusal::SslV2 } else { Refusal::NotTls }),
        [0x80..=0xff, ..] => return Ok(None),
        _ => return Err(Refusal::NotTls),
    }
    if bytes.get(1).is_some_and(|&major| major != 3) {
        return Err(if first {
            Refusal::NotTls
        } else {
            Refusal::MalformedHello
        });
    }
    let [_, _, _, high, low, ..] = *bytes else {
        return Ok(None);
    };
    match usize::from(u16::from_be_bytes([high, low])) {
        // RFC 8446 section 5.1: no zero-length fragments of handshake messages.
        0 => Err(Refusal::MalformedHello),
        length if length > MAX_FRAGMENT => Err(Refusal::RecordOverflow),
        length => Ok(Some(length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call starts to look at `read`, so at one byte a call no more than a record header is ever looked at twice.
    #[test]
    fn bytes_are_dealt_with_as_they_come() {
        let body = vec![0; MAX_HELLO];
        let message = [&[CLIENT_HELLO, 1, 0, 0][..], &body].concat();
        let bytes: Vec<u8> = message
            .chunks(1000)
            .flat_map(|fragment| {
                let [high, low] = u16::try_from(fragment.len()).unwrap().to_be_bytes();
                [&[HANDSHAKE, 3, 1, high, low], fragment].concat()
            })
            .collect();
        let mut reader = HelloReader::new();
        for end in 0..bytes.len() {
            assert_eq!(reader.advance(&bytes[..end]), Ok(None));
            assert!(end - reader.read < RECORD_HEADER, "{} of {end} bytes", reader.read);
        }
        assert_eq!(reader.advance(&bytes), Err(Refusal::MalformedHello));
        assert_eq!(reader.joined.len(), message.len());
    }

    #[test]
    fn a_hello_in_one_record_is_not_copied() {
        let mut reader = HelloReader::new();
        let bytes = [22, 3, 1, 0, 10, 1, 0, 0, 6, 0, 0, 0, 0, 0, 0];
        for end in 0..bytes.len() {
            assert_eq!(reader.advance(&bytes[..end]), Ok(None));
        }
        assert_eq!(reader.advance(&bytes), Err(Refusal::MalformedHello));
        assert_eq!(reader.joined.capacity(), 0);
    }
}
