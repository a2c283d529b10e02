//! Medians, percentiles and the clock that two processes share.

use std::time::{SystemTime, UNIX_EPOCH};

/// The middle value (the mean of the two middle ones), `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied()?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted
        .get(sorted.len() / 2 - 1)
        .map(|lower| f64::midpoint(*lower, upper))
}

/// The value that `share` (0 to 1) of the sorted values do not exceed; 0 without values.
pub(crate) fn percentile(sorted: &[u32], share: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    let index = (sorted.len() as f64 * share) as usize;
    sorted
        .get(index.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}

/// Nanoseconds since 1970.
pub(crate) fn now_nanos() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |age| age.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let values: Vec<u32> = (1..=100).collect();
        assert_eq!(percentile(&values, 0.5), 51);
        assert_eq!(percentile(&values, 0.99), 100);
        assert_eq!(percentile(&[], 0.5), 0);
    }
}
