//! Builds ClientHellos, right and wrong.

use std::iter;

pub(crate) const NAME: &str = "api.anthropic.com";

/// A ClientHello in parts. Lengths are filled in by [`Hello::message`].
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    pub(crate) session_id: Vec<u8>,
    pub(crate) ciphers: Vec<u16>,
    pub(crate) compressions: Vec<u8>,
    /// `None`: the message ends before the list, as TLS 1.0 allows.
    pub(crate) extensions: Option<Vec<(u16, Vec<u8>)>>,
}

impl Hello {
    /// What OpenSSL 3 sends, in essence.
    pub(crate) fn openssl(name: &str) -> Self {
        Self {
            version: 0x0303,
            session_id: vec![7; 32],
            ciphers: vec![0x1302, 0x1303, 0x1301, 0xc02c, 0xc030, 0x009f, 0x00ff],
            compressions: vec![0],
            extensions: Some(vec![
                (0, server_name(&[(0, name.as_bytes())])),
                (11, vec![3, 0, 1, 2]),
                (10, vec![0, 4, 0, 29, 0, 23]),
                (35, vec![]),
                (22, vec![]),
                (23, vec![]),
                (13, vec![0, 4, 4, 3, 8, 4]),
                (43, vec![4, 3, 4, 3, 3]),
                (45, vec![1, 1]),
                (51, key_share(&[(29, 32)])),
            ]),
        }
    }

    /// What Chromium sends, in essence: GREASE (RFC 8701), a post-quantum key share, GREASE ECH, the name late.
    pub(crate) fn chromium(name: &str) -> Self {
        Self {
            version: 0x0303,
            session_id: vec![9; 32],
            ciphers: vec![0x2a2a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f],
            compressions: vec![0],
            extensions: Some(vec![
                (0xcaca, vec![]),
                (43, vec![6, 0x5a, 0x5a, 3, 4, 3, 3]),
                (0xfe0d, ech()),
                (51, key_share(&[(0xfafa, 1), (0x11ec, 1216), (29, 32)])),
                (10, vec![0, 8, 0xfa, 0xfa, 0x11, 0xec, 0, 29, 0, 23]),
                (13, vec![0, 4, 4, 3, 8, 4]),
                (11, vec![1, 0]),
                (0, server_name(&[(0, name.as_bytes())])),
                (16, b"\0\x0c\x02h2\x08http/1.1".to_vec()),
                (45, vec![1, 1]),
                (0x1a1a, vec![0]),
            ]),
        }
    }

    /// The same with a padding extension (RFC 7685) of `length` bytes.
    pub(crate) fn padded(mut self, length: usize) -> Self {
        self.extensions_mut().push((21, vec![0; length]));
        self
    }

    /// The same with other data in its server_name extension.
    pub(crate) fn with_server_name(mut self, data: Vec<u8>) -> Self {
        let slot = self.extensions_mut().iter_mut().find(|(kind, _)| *kind == 0);
        slot.expect("a server_name").1 = data;
        self
    }

    /// The same without its server_name extension.
    pub(crate) fn without_server_name(mut self) -> Self {
        self.extensions_mut().retain(|(kind, _)| *kind != 0);
        self
    }

    pub(crate) fn extensions_mut(&mut self) -> &mut Vec<(u16, Vec<u8>)> {
        self.extensions.as_mut().expect("extensions")
    }

    /// The message's body, without its header.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut body = self.version.to_be_bytes().to_vec();
        body.extend((0..32).map(|i: u8| i.wrapping_mul(37)));
        body.push(self.session_id.len() as u8);
        body.extend(&self.session_id);
        let ciphers: Vec<u8> = self.ciphers.iter().flat_map(|c| c.to_be_bytes()).collect();
        body.extend(vector16(&ciphers));
        body.push(self.compressions.len() as u8);
        body.extend(&self.compressions);
        if let Some(extensions) = &self.extensions {
            let one = |(kind, data): &(u16, Vec<u8>)| [kind.to_be_bytes().to_vec(), vector16(data)].concat();
            body.extend(vector16(&extensions.iter().flat_map(one).collect::<Vec<u8>>()));
        }
        body
    }

    /// The handshake message.
    pub(crate) fn message(&self) -> Vec<u8> {
        handshake(1, &self.body())
    }

    /// The message in as few records as it fits in.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        records(&self.message(), iter::repeat(1 << 14))
    }
}

/// A handshake message of the given type.
pub(crate) fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&[kind], &length[1..], body].concat()
}

/// One record.
pub(crate) fn record(kind: u8, fragment: &[u8]) -> Vec<u8> {
    [&[kind, 3, 1][..], &vector16(fragment)].concat()
}

/// Handshake records with fragments of the given sizes, as long as the message lasts.
pub(crate) fn records(mut message: &[u8], sizes: impl IntoIterator<Item = usize>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for size in sizes {
        if message.is_empty() {
            break;
        }
        let (fragment, rest) = message.split_at(size.min(message.len()));
        bytes.extend(record(22, fragment));
        message = rest;
    }
    bytes
}

/// The data of a server_name extension.
pub(crate) fn server_name(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let entry = |(kind, name): &(u8, &[u8])| [vec![*kind], vector16(name)].concat();
    vector16(&entries.iter().flat_map(entry).collect::<Vec<u8>>())
}

/// The data of an outer encrypted_client_hello extension.
pub(crate) fn ech() -> Vec<u8> {
    let mut data = vec![0, 0, 1, 0, 1, 0x42];
    data.extend(vector16(&[5; 32]));
    data.extend(vector16(&[6; 144]));
    data
}

fn key_share(shares: &[(u16, usize)]) -> Vec<u8> {
    let one = |&(group, length): &(u16, usize)| [group.to_be_bytes().to_vec(), vector16(&vec![1; length])].concat();
    vector16(&shares.iter().flat_map(one).collect::<Vec<u8>>())
}

/// Bytes behind their 16-bit length.
pub(crate) fn vector16(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("fits 16 bits");
    [&length.to_be_bytes(), bytes].concat()
}
