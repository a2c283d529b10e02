//! The one hash of names: FNV-1a 64 from the last byte to the first, then the finaliser of MurmurHash3.
//!
//! It is fixed for ever, since every session, and router and forwarder of one session, derive addresses and ports from
//! it. Backwards, because one pass then yields the hash of every parent domain too. Nobody gains from colliding with
//! it: only the user's own list is inserted anywhere, a sandbox only asks.

/// FNV-1a 64 offset basis (draft-eastlake-fnv section 5).
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
/// FNV 64-bit prime, 2^40 + 2^8 + 0xb3 (draft-eastlake-fnv section 5).
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of a whole name.
pub(crate) fn name(name: &str) -> u64 {
    finish(name.bytes().rev().fold(OFFSET_BASIS, push))
}

/// The hash of a name with a port.
pub(crate) fn name_and_port(name: &str, port: u16) -> u64 {
    let bytes = name.bytes().rev().chain(port.to_be_bytes());
    finish(bytes.fold(OFFSET_BASIS, push))
}

/// Where each parent of `name` starts, and its hash: the last label first, `name` itself (at 0) last.
pub(crate) fn name_and_parents(name: &str) -> impl Iterator<Item = (usize, u64)> {
    let bytes = name.as_bytes();
    let mut state = OFFSET_BASIS;
    let mut at = bytes.len();
    std::iter::from_fn(move || {
        while let Some((&byte, rest)) = bytes.get(..at).and_then(<[u8]>::split_last) {
            state = push(state, byte);
            at -= 1;
            if matches!(rest.last(), None | Some(b'.')) {
                return Some((at, finish(state)));
            }
        }
        None
    })
}

const fn push(state: u64, byte: u8) -> u64 {
    (state ^ byte as u64).wrapping_mul(PRIME)
}

/// FNV's low bits depend on the low bits of the text alone; this spreads every bit over all of them (fmix64).
const fn finish(mut state: u64) -> u64 {
    state ^= state >> 33;
    state = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
    state ^= state >> 33;
    state = state.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    state ^ (state >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_fnv_1a_of_the_reversed_text() {
        // Published vectors of FNV-1a 64.
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("raboof", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(text.bytes().rev().fold(OFFSET_BASIS, push), expected, "{text}");
        }
    }

    #[test]
    fn parents_have_the_hash_of_their_own_text() {
        let text = "a.bc.example.com";
        let parents: Vec<_> = name_and_parents(text).collect();
        assert_eq!(
            parents.iter().map(|&(at, _)| &text[at..]).collect::<Vec<_>>(),
            ["com", "example.com", "bc.example.com", "a.bc.example.com"]
        );
        assert!(parents.iter().all(|&(at, hash)| hash == name(&text[at..])));
    }
}
