//! ClientHellos as browsers send them, and as nobody should.

/// Extension numbers (IANA "TLS ExtensionType Values").
pub mod extension {
    /// RFC 6066 section 3.
    pub const SERVER_NAME: u16 = 0;
    /// RFC 7301.
    pub const ALPN: u16 = 16;
    /// RFC 7685.
    pub const PADDING: u16 = 21;
    /// RFC 5077.
    pub const SESSION_TICKET: u16 = 35;
    /// RFC 9849, by its draft number, which is final.
    pub const ECH: u16 = 0xfe0d;
}

/// A ClientHello (RFC 8446 section 4.1.2) that can be changed before it becomes bytes.
#[derive(Clone, Debug)]
pub struct ClientHello {
    /// `legacy_session_id`.
    pub session_id: Vec<u8>,
    /// `cipher_suites`.
    pub ciphers: Vec<u16>,
    /// `extensions`: number and content, in order.
    pub extensions: Vec<(u16, Vec<u8>)>,
}

impl ClientHello {
    /// What a plain TLS 1.2 library sends.
    #[must_use]
    pub fn small(name: &str) -> Self {
        Self {
            session_id: Vec::new(),
            ciphers: vec![0xc02f, 0xc030, 0x009c],
            extensions: vec![
                (extension::SERVER_NAME, server_name(name)),
                (10, vec![0, 2, 0, 0x1d]),
                (11, vec![1, 0]),
                (13, vec![0, 4, 4, 3, 8, 4]),
            ],
        }
    }

    /// Shaped like Chrome 131 and later: GREASE (RFC 8701), an X25519MLKEM768 share (1216 bytes), GREASE ECH, ALPS.
    #[must_use]
    pub fn chrome(name: &str) -> Self {
        let shares = [(0x4a4a, 1), (0x11ec, 1216), (0x1d, 32)];
        Self {
            session_id: noise(32),
            ciphers: vec![
                0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x9c,
                0x9d, 0x2f, 0x35,
            ],
            extensions: vec![
                (0x8a8a, Vec::new()),
                (0xff01, vec![0]),
                (51, key_shares(&shares)),
                (extension::ECH, grease_ech()),
                (5, vec![1, 0, 0, 0, 0]),
                (0x44cd, vec![0, 3, 2, b'h', b'2']),
                (extension::SESSION_TICKET, Vec::new()),
                (43, vec![6, 0x6a, 0x6a, 3, 4, 3, 3]),
                (18, Vec::new()),
                (13, vec![0, 16, 4, 3, 8, 4, 4, 1, 5, 3, 8, 5, 5, 1, 8, 6, 6, 1]),
                (27, vec![2, 0, 2]),
                (extension::SERVER_NAME, server_name(name)),
                (11, vec![1, 0]),
                (45, vec![1, 1]),
                (23, Vec::new()),
                (10, vec![0, 10, 0x4a, 0x4a, 0x11, 0xec, 0, 0x1d, 0, 0x17, 0, 0x18]),
                (
                    extension::ALPN,
                    vec![0, 12, 2, b'h', b'2', 8, b'h', b't', b't', b'p', b'/', b'1', b'.', b'1'],
                ),
                (0xdada, vec![0]),
            ],
        }
    }

    /// Shaped like Firefox 132 and later: three key shares, delegated credentials, a record size limit.
    #[must_use]
    pub fn firefox(name: &str) -> Self {
        Self {
            session_id: noise(32),
            ciphers: vec![
                0x1301, 0x1303, 0x1302, 0xc02b, 0xc02f, 0xcca9, 0xcca8, 0xc02c, 0xc030, 0xc00a, 0xc009, 0xc013, 0xc014,
                0x9c, 0x9d, 0x2f, 0x35,
            ],
            extensions: vec![
                (extension::SERVER_NAME, server_name(name)),
                (23, Vec::new()),
                (0xff01, vec![0]),
                (
                    10,
                    vec![0, 16, 0x11, 0xec, 0, 0x1d, 0, 0x17, 0, 0x18, 0, 0x19, 1, 0, 1, 1, 1, 2],
                ),
                (11, vec![1, 0]),
                (extension::SESSION_TICKET, Vec::new()),
                (
                    extension::ALPN,
                    vec![0, 12, 2, b'h', b'2', 8, b'h', b't', b't', b'p', b'/', b'1', b'.', b'1'],
                ),
                (5, vec![1, 0, 0, 0, 0]),
                (34, vec![0, 8, 4, 3, 5, 3, 6, 3, 2, 3]),
                (18, Vec::new()),
                (51, key_shares(&[(0x11ec, 1216), (0x1d, 32), (0x17, 65)])),
                (43, vec![4, 3, 4, 3, 3]),
                (13, vec![0, 16, 4, 3, 8, 4, 4, 1, 5, 3, 8, 5, 5, 1, 8, 6, 6, 1]),
                (45, vec![1, 1]),
                (28, vec![0x40, 1]),
                (27, vec![6, 0, 1, 0, 2, 0, 3]),
                (extension::ECH, grease_ech()),
            ],
        }
    }

    /// Shaped like Safari 18: GREASE at both ends, padding to 512 bytes as older load balancers wanted (RFC 7685).
    #[must_use]
    pub fn safari(name: &str) -> Self {
        let hello = Self {
            session_id: noise(32),
            ciphers: vec![
                0x3a3a, 0x1301, 0x1302, 0x1303, 0xc02c, 0xc02b, 0xcca9, 0xc030, 0xc02f, 0xcca8, 0xc00a, 0xc009, 0xc014,
                0xc013, 0x9d, 0x9c, 0x35, 0x2f, 0xc008, 0xc012, 0x0a,
            ],
            extensions: vec![
                (0xfafa, Vec::new()),
                (extension::SERVER_NAME, server_name(name)),
                (23, Vec::new()),
                (0xff01, vec![0]),
                (10, vec![0, 10, 0xba, 0xba, 0, 0x1d, 0, 0x17, 0, 0x18, 0, 0x19]),
                (11, vec![1, 0]),
                (
                    extension::ALPN,
                    vec![0, 12, 2, b'h', b'2', 8, b'h', b't', b't', b'p', b'/', b'1', b'.', b'1'],
                ),
                (5, vec![1, 0, 0, 0, 0]),
                (
                    13,
                    vec![0, 22, 4, 3, 8, 4, 4, 1, 5, 3, 2, 3, 8, 5, 8, 5, 5, 1, 8, 6, 6, 1, 2, 1],
                ),
                (18, Vec::new()),
                (51, key_shares(&[(0xbaba, 1), (0x1d, 32)])),
                (45, vec![1, 1]),
                (43, vec![10, 0x0a, 0x0a, 3, 4, 3, 3, 3, 2, 3, 1]),
                (27, vec![2, 0, 1]),
                (0x1a1a, vec![0]),
            ],
        };
        hello.padded_to(512)
    }

    /// Replaces the content of an extension, or adds the extension at the end.
    #[must_use]
    pub fn with(mut self, number: u16, content: Vec<u8>) -> Self {
        match self.extensions.iter_mut().find(|(present, _)| *present == number) {
            Some((_, old)) => *old = content,
            None => self.extensions.push((number, content)),
        }
        self
    }

    /// Adds an extension even if there is one of the same number.
    #[must_use]
    pub fn and(mut self, number: u16, content: Vec<u8>) -> Self {
        self.extensions.push((number, content));
        self
    }

    /// Removes an extension.
    #[must_use]
    pub fn without(mut self, number: u16) -> Self {
        self.extensions.retain(|(present, _)| *present != number);
        self
    }

    /// Makes the message `size` bytes long: by a padding extension in front of the name, or by a session ticket when
    /// that is not enough (a single extension holds 64 KiB).
    #[must_use]
    pub fn padded_to(mut self, size: usize) -> Self {
        let missing = size - 4 - self.message().len();
        self.extensions.insert(0, (extension::PADDING, vec![0; missing]));
        self
    }

    /// The handshake message.
    #[must_use]
    pub fn message(&self) -> Vec<u8> {
        let mut extensions = Vec::new();
        for (number, content) in &self.extensions {
            extensions.extend(number.to_be_bytes());
            extensions.extend(prefixed(content));
        }
        let mut body = vec![3, 3];
        body.extend(noise(32));
        body.push(u8::try_from(self.session_id.len()).unwrap());
        body.extend(&self.session_id);
        let ciphers: Vec<u8> = self.ciphers.iter().flat_map(|cipher| cipher.to_be_bytes()).collect();
        body.extend(prefixed(&ciphers));
        body.extend([1, 0]);
        body.extend(prefixed(&extensions));
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1], &length[1..], &body].concat()
    }

    /// The message in as few records as it needs.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.message()
            .chunks(1 << 14)
            .flat_map(|part| record(22, part))
            .collect()
    }

    /// The message in two records, of which the first has `at` bytes.
    #[must_use]
    pub fn split_records(&self, at: usize) -> Vec<u8> {
        let message = self.message();
        let (first, second) = message.split_at(at);
        [record(22, first), record(22, second)].concat()
    }
}

/// A record (RFC 8446 section 5.1).
#[must_use]
pub fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 1], &prefixed(content)[..]].concat()
}

/// The content of a server_name extension with one host_name.
#[must_use]
pub fn server_name(name: &str) -> Vec<u8> {
    let entry = [&[0], &prefixed(name.as_bytes())[..]].concat();
    prefixed(&entry)
}

/// A fatal alert as it stands on the wire: description (RFC 8446 section 6).
#[must_use]
pub fn alert(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [21, 3, _, 0, 2, 2, description] => Some(*description),
        _ => None,
    }
}

/// Bytes with their length in two bytes in front.
#[must_use]
pub fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn key_shares(groups: &[(u16, usize)]) -> Vec<u8> {
    let shares = groups
        .iter()
        .flat_map(|&(group, size)| [&group.to_be_bytes(), &prefixed(&noise(size))[..]].concat());
    prefixed(&shares.collect::<Vec<_>>())
}

/// What a browser without ECH keys for the server sends in its place (RFC 9849 section 6.2).
fn grease_ech() -> Vec<u8> {
    [
        &[0, 0, 1, 0, 1, 0x5f],
        &prefixed(&noise(32))[..],
        &prefixed(&noise(144))[..],
    ]
    .concat()
}

fn noise(size: usize) -> Vec<u8> {
    (0..size).map(|index| u8::try_from(index * 37 % 251).unwrap()).collect()
}
