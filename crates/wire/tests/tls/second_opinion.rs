//! rustls reads the same hellos. The reader here may refuse more, but a name that it gives must be the one that a server
//! reads.

use super::hello::{Hello, NAME, records, server_name};
use super::verdict;
use proptest::prelude::*;
use rustls::server::Acceptor;
use std::iter;

/// What rustls reads: `None` for an incomplete or refused hello, `Some(None)` for one without a name it takes.
fn rustls_name(bytes: &[u8]) -> Option<Option<String>> {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    // rustls takes what its buffer holds, so it may need several goes; it never needs more than one for each 4 KiB.
    for _ in 0..bytes.len() / 1024 + 2 {
        acceptor.read_tls(&mut rest).ok()?;
        if let Some(accepted) = acceptor.accept().ok()? {
            return Some(accepted.client_hello().server_name().map(str::to_owned));
        }
    }
    None
}

#[test]
fn both_read_what_clients_send() {
    for hello in [
        Hello::openssl(NAME),
        Hello::chromium(NAME),
        Hello::chromium("API.Anthropic.COM"),
        Hello::chromium(NAME).padded(9_000),
    ] {
        for size in [1, 7, 100, 1 << 14] {
            let bytes = records(&hello.message(), iter::repeat(size));
            assert_eq!(rustls_name(&bytes), Some(Some(NAME.to_owned())), "records of {size}");
            assert_eq!(super::name_of(&bytes), NAME, "records of {size}");
        }
    }
}

fn hellos() -> impl Strategy<Value = Hello> {
    let names = prop_oneof![
        Just(NAME.to_owned()),
        "[a-zA-Z0-9_.-]{1,20}",
        "[a-z]{1,8}\\.[A-Z]{1,4}\\.?",
        "[0-9]{1,3}(\\.[0-9a-fx]{1,3}){0,3}",
    ];
    let list = prop::collection::vec((prop_oneof![9 => Just(0u8), 1 => any::<u8>()], names.clone()), 0..3);
    (names, prop::option::of(list), any::<bool>()).prop_map(|(name, list, chromium)| {
        let hello = if chromium {
            Hello::chromium(&name)
        } else {
            Hello::openssl(&name)
        };
        match list {
            Some(list) => {
                let entries: Vec<(u8, &[u8])> = list.iter().map(|(kind, name)| (*kind, name.as_bytes())).collect();
                hello.with_server_name(server_name(&entries))
            }
            None => hello,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Hellos with odd names and lists, some bytes changed, inserted or removed, in records of any size.
    #[test]
    fn never_another_name_than_rustls(
        hello in hellos(),
        extra in prop::option::of((any::<prop::sample::Index>(), prop_oneof![Just(0u16), Just(10), any::<u16>()], "[a-z.]{0,12}")),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 0..3),
        record_size in prop_oneof![Just(1usize << 14), 1usize..200],
    ) {
        let mut hello = hello;
        if let Some((index, kind, name)) = extra {
            let at = index.index(hello.extensions_mut().len() + 1);
            hello.extensions_mut().insert(at, (kind, server_name(&[(0, name.as_bytes())])));
        }
        let mut message = hello.message();
        for (index, byte, change) in changes {
            let at = index.index(message.len());
            match change {
                0 => message[at] = byte,
                1 => message.insert(at, byte),
                _ => drop(message.remove(at)),
            }
        }
        let bytes = records(&message, iter::repeat(record_size));
        if let (Ok(Some(ours)), Some(theirs)) = (verdict(&bytes), rustls_name(&bytes)) {
            prop_assert_eq!(Some(ours.name.to_string()), theirs);
        }
    }
}
