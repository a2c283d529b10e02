//! Places in a table of fixed size that do not depend on who came first.

/// A wish for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    /// The first choice, below the table's `primary` size.
    pub(crate) home: u32,
    /// Who claims.
    pub(crate) owner: u32,
}

/// Which places are taken.
pub(crate) struct Places {
    taken: Vec<u64>,
    /// Places that can be a first choice; the ones above are for when these are full.
    primary: u32,
    total: u32,
}

impl Places {
    pub(crate) fn new(primary: u32, total: u32) -> Self {
        Self {
            taken: vec![0; total.div_ceil(u64::BITS) as usize],
            primary,
            total,
        }
    }

    /// Takes a place; false if it was taken.
    pub(crate) fn take(&mut self, place: u32) -> bool {
        let bit = 1 << (place % u64::BITS);
        self.taken.get_mut((place / u64::BITS) as usize).is_some_and(|word| {
            let free = *word & bit == 0;
            *word |= bit;
            free
        })
    }

    fn first_free(&self, from: u32, to: u32) -> Option<u32> {
        let mut place = from;
        while place < to {
            let word = self.taken.get((place / u64::BITS) as usize)? >> (place % u64::BITS);
            match word.trailing_ones() {
                0 => return Some(place),
                ones => place = (place + ones).min((place / u64::BITS + 1) * u64::BITS),
            }
        }
        None
    }

    /// Gives every claim a place, or tells that there is none for one of them. `claims` are sorted by `home`, those
    /// with the same home in an order of their own that everybody computes alike.
    ///
    /// First everyone whose first choice is free gets it (of several the first), then the others probe upwards. So
    /// one claim more or less moves none but those that share its home, and the probing ones behind it. Linear in
    /// claims and table size, however full the table is.
    pub(crate) fn assign(&mut self, claims: &[Claim], mut give: impl FnMut(u32, u32)) -> Result<(), Full> {
        let mut losers = Vec::new();
        for &claim in claims {
            if self.take(claim.home) {
                give(claim.owner, claim.home);
            } else {
                losers.push(claim);
            }
        }
        // What lies between a loser's home and its place is taken: the next loser, whose home is no lower, need not
        // look there again.
        let mut wrapped = false;
        let mut next = 0;
        for loser in losers {
            let from = if wrapped { next } else { next.max(loser.home) };
            let mut free = self.first_free(from, if wrapped { self.total } else { self.primary });
            if free.is_none() && !wrapped {
                wrapped = true;
                free = self.first_free(0, self.total);
            }
            let place = free.ok_or(Full)?;
            self.take(place);
            give(loser.owner, place);
            next = place + 1;
        }
        Ok(())
    }
}

/// No place is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn assigned(homes: &[u32], primary: u32, total: u32) -> Result<BTreeMap<u32, u32>, Full> {
        let mut claims: Vec<_> = (0..).zip(homes).map(|(owner, &home)| Claim { home, owner }).collect();
        claims.sort_unstable();
        let mut places = BTreeMap::new();
        Places::new(primary, total).assign(&claims, |owner, place| {
            places.insert(owner, place);
        })?;
        Ok(places)
    }

    proptest! {
        /// Small tables, so that collisions, wrapping and the overflow are the rule.
        #[test]
        fn everyone_gets_one_place_of_their_own_while_there_are_any(
            primary in 1..140_u32, more in 0..140_u32, seeds in prop::collection::vec(any::<u32>(), 0..300)
        ) {
            let total = primary + more;
            let homes: Vec<_> = seeds.iter().map(|seed| seed % primary).collect();
            let places = assigned(&homes, primary, total);
            prop_assert_eq!(places.is_ok(), homes.len() <= total as usize);
            if let Ok(places) = places {
                let mut taken: Vec<_> = places.values().copied().collect();
                taken.sort_unstable();
                taken.dedup();
                prop_assert_eq!(taken.len(), homes.len());
                prop_assert!(taken.iter().all(|&place| place < total));
                if homes.len() <= primary as usize {
                    prop_assert!(taken.iter().all(|&place| place < primary));
                }
                // Whoever is the only one to want a place has it.
                for (owner, home) in (0..).zip(&homes) {
                    if homes.iter().filter(|other| *other == home).count() == 1 {
                        prop_assert_eq!(places[&owner], *home);
                    }
                }
            }
        }
    }
}
