//! A chunked body ends at the same byte however it is cut and whether its data is read or skipped.
#![no_main]

use allowlist::Refusal;
use libfuzzer_sys::fuzz_target;
use wire::http::{BodyLength, BodyReader};

fuzz_target!(|bytes: &[u8]| {
    let Some((&seed, bytes)) = bytes.split_first() else { return };
    let whole = read(bytes, bytes.len().max(1), false);
    for step in [1, 2, usize::from(seed).max(1)] {
        for skipping in [false, true] {
            let cut = read(bytes, step, skipping);
            assert_eq!(whole, cut, "in steps of {step}, skipping: {skipping}");
        }
    }
    if let Ok((taken, true)) = whole {
        let body = bytes.get(..taken).unwrap_or_default();
        assert!(body.ends_with(b"\r\n\r\n"));
        assert_eq!(read(body, 1, false), Ok((taken, true)), "what follows has no part in it");
    }
});

/// How many bytes are the body's, and whether it is complete.
fn read(bytes: &[u8], step: usize, skipping: bool) -> Result<(usize, bool), Refusal> {
    let mut body = BodyReader::new(BodyLength::Chunked);
    let mut taken = 0;
    while let Some(rest) = bytes.get(taken..)
        && !rest.is_empty()
        && !body.is_done()
    {
        let piece = rest.get(..step).unwrap_or(rest);
        let unseen = usize::try_from(body.remaining()).unwrap_or(usize::MAX).min(piece.len());
        if skipping && unseen > 0 {
            body.skip(unseen as u64)?;
            taken += unseen;
        } else {
            let more = body.advance(piece)?;
            assert!(more == piece.len() || body.is_done());
            taken += more;
        }
    }
    Ok((taken, body.is_done()))
}
