//! What real clients sent: see hellos/README.md.

use super::{verdict, verdict_in_segments};
use allowlist::Refusal;

const NAMED: [(&str, &[u8], bool); 8] = [
    ("chromium", include_bytes!("../hellos/chromium-156.bin"), true),
    ("curl", include_bytes!("../hellos/curl-7.88-openssl.bin"), false),
    ("gnutls", include_bytes!("../hellos/gnutls-3.7.bin"), false),
    ("node", include_bytes!("../hellos/node-20.bin"), false),
    ("openssl", include_bytes!("../hellos/openssl-3.0.bin"), false),
    (
        "openssl 0-RTT",
        include_bytes!("../hellos/openssl-3.0-early-data.bin"),
        false,
    ),
    (
        "openssl TLS 1.2",
        include_bytes!("../hellos/openssl-3.0-tls12.bin"),
        false,
    ),
    ("python", include_bytes!("../hellos/python-3.11.bin"), false),
];

/// MetaCubeX/mihomo #1711 and go-gost/gost #356: clients whose hello looks unusual were not recognised.
#[test]
fn mihomo_1711_gost_356_every_client_is_read() {
    for (client, bytes, ech) in NAMED {
        let hello = verdict(bytes).expect(client).expect(client);
        assert_eq!(hello.name.as_str(), super::hello::NAME, "{client}");
        assert_eq!(hello.ech, ech, "{client}");
        let (bytewise, _) = verdict_in_segments(bytes, 0..=bytes.len());
        assert_eq!(bytewise, Ok(Some(hello)), "{client}");
    }
}

/// linkerd2 #958: early data right behind the hello was lost. It is the caller's to pass on, and not a fault.
#[test]
fn linkerd2_958_early_data_behind_the_hello_is_no_fault() {
    let (_, bytes, _) = NAMED[5];
    let hello_end = 5 + usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
    assert_eq!(
        [bytes[hello_end], bytes[hello_end + 6]],
        [20, 23],
        "change_cipher_spec, then application data"
    );
    assert_eq!(verdict(bytes), verdict(&bytes[..hello_end]));
}

#[test]
fn a_client_that_sends_no_name_is_refused() {
    let bytes = include_bytes!("../hellos/openssl-3.0-no-sni.bin");
    assert_eq!(verdict(bytes), Err(Refusal::MissingSni));
}
