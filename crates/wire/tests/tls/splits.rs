//! The verdict must not depend on how the bytes are cut into segments and records.

use super::hello::{Hello, NAME, record, records};
use super::{name_of, verdict, verdict_in_segments};
use allowlist::Refusal;
use proptest::prelude::*;
use std::iter;
use wire::tls::{HelloReader, MAX_HELLO, MAX_RECEIVED};

/// CVE-2026-32305 (GHSA-wvvq-wgcr-9q48): a hello cut into two records was taken for one without a name. Also
/// mholt/caddy-l4 #346.
#[test]
fn traefik_cve_2026_32305_split_records() {
    for hello in [Hello::openssl(NAME), Hello::chromium(NAME)] {
        let whole = verdict(&hello.bytes());
        let message = hello.message();
        for first in 1..message.len() {
            assert_eq!(
                verdict(&records(&message, [first, message.len()])),
                whole,
                "cut at {first}"
            );
        }
        for size in 1..=64 {
            assert_eq!(
                verdict(&records(&message, iter::repeat(size))),
                whole,
                "records of {size}"
            );
        }
    }
}

/// The refusal of a hello without a name must not depend on the cut either: it is not "try again".
#[test]
fn traefik_cve_2026_32305_split_records_without_a_name() {
    let message = Hello::openssl(NAME).without_server_name().message();
    for first in 1..message.len() {
        assert_eq!(
            verdict(&records(&message, [first, message.len()])),
            Err(Refusal::MissingSni)
        );
    }
}

/// kubernetes/ingress-nginx PR #11843, haproxy #3148: a decision on the first segment. Also Envoy's `MultipleReads`.
#[test]
fn ingress_nginx_11843_haproxy_3148_split_segments() {
    for hello in [Hello::openssl(NAME), Hello::chromium(NAME)] {
        for bytes in [hello.bytes(), records(&hello.message(), iter::repeat(100))] {
            let whole = verdict(&bytes);
            for cut in 0..bytes.len() {
                let mut reader = HelloReader::new();
                assert_eq!(reader.advance(&bytes[..cut]), Ok(None), "cut at {cut}");
                assert_eq!(reader.advance(&bytes), whole, "cut at {cut}");
            }
            assert_eq!(verdict_in_segments(&bytes, 0..=bytes.len()), (whole, bytes.len()));
        }
    }
}

/// traefik #12871, envoy #40544: the limit was below what clients send. 536 is the smallest MSS IPv4 hosts use.
#[test]
fn traefik_12871_envoy_40544_large_hellos() {
    for padding in [0, 7_000, 10_000, 18_000, 60_000] {
        let bytes = Hello::chromium(NAME).padded(padding).bytes();
        assert_eq!(name_of(&bytes), NAME, "{padding}");
        let (in_segments, _) = verdict_in_segments(&bytes, (0..bytes.len()).step_by(536));
        assert_eq!(in_segments, verdict(&bytes), "{padding}");
    }
}

#[test]
fn the_longest_hello_is_read_and_a_longer_one_refused_by_its_header() {
    let room = MAX_HELLO - Hello::openssl(NAME).padded(0).body().len();
    let longest = Hello::openssl(NAME).padded(room);
    assert_eq!(longest.body().len(), MAX_HELLO);
    assert_eq!(name_of(&longest.bytes()), NAME);

    let one_byte_records = records(&longest.message(), iter::repeat(1));
    assert_eq!(one_byte_records.len(), MAX_RECEIVED);
    assert_eq!(name_of(&one_byte_records), NAME);

    let too_long = [record(22, &[1, 1, 0, 1, 3]), vec![0; 100]].concat();
    let (result, at) = verdict_in_segments(&too_long, 0..=too_long.len());
    assert_eq!((result, at), (Err(Refusal::HelloTooLarge), 9));
}

#[test]
fn a_verdict_stands_when_more_bytes_come() {
    let mut good = Hello::openssl(NAME).bytes();
    let mut reader = HelloReader::new();
    let hello = reader.advance(&good);
    good.extend(record(22, b"what a server would see"));
    assert_eq!(reader.advance(&good), hello);

    let mut reader = HelloReader::new();
    assert_eq!(reader.advance(b"G"), Err(Refusal::NotTls));
    assert_eq!(reader.advance(&good), Err(Refusal::NotTls));
}

proptest! {
    /// Whatever the bytes are: in one piece and in any segments the verdict is the same.
    #[test]
    fn segments_do_not_matter(
        mut bytes in prop_oneof![
            Just(Hello::chromium(NAME).bytes()),
            (1usize..300).prop_map(|size| records(&Hello::openssl(NAME).message(), iter::repeat(size))),
            prop::collection::vec(any::<u8>(), 0..64),
        ],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        mut cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        for (index, byte) in changes {
            if !bytes.is_empty() {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let mut ends: Vec<usize> = cuts.drain(..).map(|cut| cut.index(bytes.len() + 1)).collect();
        ends.sort_unstable();
        prop_assert_eq!(verdict_in_segments(&bytes, ends).0, verdict(&bytes));
        prop_assert_eq!(verdict_in_segments(&bytes, 0..bytes.len()).0, verdict(&bytes));
    }
}
