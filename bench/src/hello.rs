//! A ClientHello as OpenSSL 3 sends it (RFC 8446 section 4.1.2), padded to 517 bytes as curl's is, with the name asked for.

/// Bytes of one hello on the wire, record header included: what curl 7.88 with OpenSSL 3.0 sends.
const HELLO_BYTES: usize = 517;

/// A TLS record with a whole ClientHello for `name`.
pub(crate) fn client_hello(name: &str) -> Vec<u8> {
    let mut extensions = Vec::new();
    extension(
        &mut extensions,
        0,
        &prefixed(&[&[0], prefixed(name.as_bytes()).as_slice()].concat()),
    );
    extension(&mut extensions, 11, &[3, 0, 1, 2]);
    extension(&mut extensions, 10, &[0, 8, 0, 29, 0, 23, 0, 30, 0, 25]);
    extension(&mut extensions, 16, b"\0\x0c\x02h2\x08http/1.1");
    extension(&mut extensions, 22, &[]);
    extension(&mut extensions, 23, &[]);
    extension(&mut extensions, 13, &[0, 8, 4, 3, 8, 4, 4, 1, 8, 7]);
    extension(&mut extensions, 43, &[4, 3, 4, 3, 3]);
    extension(&mut extensions, 45, &[1, 1]);
    extension(
        &mut extensions,
        51,
        &[[0, 36, 0, 29, 0, 32].as_slice(), &[0x5a; 32]].concat(),
    );

    let suites: &[u8] = &[0x13, 0x02, 0x13, 0x03, 0x13, 0x01, 0xc0, 0x2c, 0xc0, 0x30, 0x00, 0xff];
    let mut body = [
        [3, 3].as_slice(),
        &[0xa5; 32],
        &[32],
        &[0xc3; 32],
        &prefixed(suites),
        &[1, 0],
    ]
    .concat();
    // 9: record and handshake headers; 2: the length of all extensions; 4: the padding extension's own header (RFC 7685).
    let padding = HELLO_BYTES.saturating_sub(9 + body.len() + 2 + extensions.len() + 4);
    extension(&mut extensions, 21, &vec![0; padding]);
    body.extend(prefixed(&extensions));
    let handshake = [[1, 0].as_slice(), &prefixed(&body)].concat();
    [[0x16, 3, 1].as_slice(), &prefixed(&handshake)].concat()
}

fn extension(into: &mut Vec<u8>, kind: u16, data: &[u8]) {
    into.extend(kind.to_be_bytes());
    into.extend(prefixed(data));
}

/// `data` behind its length in two bytes.
fn prefixed(data: &[u8]) -> Vec<u8> {
    [&u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes(), data].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_size_of_curls_and_the_name() {
        let hello = client_hello("close.example.com");
        assert_eq!(hello.len(), HELLO_BYTES);
        assert_eq!(hello[3..5], u16::try_from(HELLO_BYTES - 5).unwrap().to_be_bytes());
        assert!(hello.windows(17).any(|window| window == b"close.example.com"));
    }
}
