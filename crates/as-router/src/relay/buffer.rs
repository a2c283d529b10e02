//! Copy buffers, lent only while bytes move: an idle connection holds none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Bytes in one buffer. 32 KiB: splice(2) starts to pay above that size per call, and below it larger copies save
/// system calls.
pub(crate) const SIZE: usize = 32 * 1024;

/// Buffers a thread keeps for the next loan: 64 x 32 KiB = 2 MiB at most, and only after a burst needed as many.
const KEPT: usize = 64;

thread_local! {
    static FREE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A lent buffer; it goes back when it is dropped.
pub(crate) struct Buffer(Box<[u8]>);

/// Lends a buffer. Its content is whatever the last borrower left.
pub(crate) fn lend() -> Buffer {
    Buffer(
        FREE.with_borrow_mut(Vec::pop)
            .unwrap_or_else(|| vec![0; SIZE].into_boxed_slice()),
    )
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        // At thread exit the pool may be gone already; then the buffer is simply freed.
        let _ = FREE.try_with(|free| {
            if let Ok(mut free) = free.try_borrow_mut()
                && free.len() < KEPT
            {
                free.push(bytes);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_lent_again() {
        let first = lend();
        let address = first.as_ptr();
        drop(first);
        let second = lend();
        assert_eq!(second.as_ptr(), address);
        assert_eq!(second.len(), SIZE);
    }

    #[test]
    fn no_more_buffers_are_kept_than_the_limit() {
        let burst: Vec<_> = (0..KEPT * 2).map(|_| lend()).collect();
        drop(burst);
        assert_eq!(FREE.with_borrow(Vec::len), KEPT);
    }
}
