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
