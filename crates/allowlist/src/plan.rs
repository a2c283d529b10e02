//! The plan: which loopback address and which router port belong to which name.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use hashbrown::HashTable;

use crate::place::{Claim, Full, Places};
use crate::{Allowlist, HostName, Rule, hash};

/// Addresses and router ports of an allowlist.
///
/// A pure function of the set of entries: the order of lines does not matter, and where no two hashes collide neither
/// do the other entries, so that router and forwarder, and two versions of a file, agree.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every exact name that this process has planned, removed ones among them: what they had stays theirs.
    names: Vec<Planned>,
    by_name: HashTable<u32>,
    by_place: HashTable<u32>,
    /// Router ports by name and port, of removed entries too.
    router_ports: HashMap<(HostName, u16), u16>,
    forwards: Vec<Forward>,
}

#[derive(Clone, Debug)]
struct Planned {
    name: HostName,
    place: u32,
    live: bool,
}

/// A raw TCP forward: what an entry with a port asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forward {
    /// The upstream's name.
    pub name: HostName,
    /// The upstream's port, and the forwarder's on `address`.
    pub port: u16,
    /// The loopback address of `name`.
    pub address: Ipv4Addr,
    /// The router's port.
    pub router_port: u16,
    /// The line of the entry, from 1.
    pub line: u32,
}

/// There are more entries than addresses or ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// More exact names, those removed since the start among them, than loopback addresses.
    #[error(
        "no loopback address is left for {names} exact names (there are {}, and those of removed entries are not \
         given to others): use `.suffix` entries, or start a new session",
        EXACT.places()
    )]
    NoAddress {
        /// How many names need one.
        names: usize,
    },
    /// More `host:port` entries, those removed since the start among them, than router ports.
    #[error(
        "no router port is left for {forwards} `host:port` entries (there are {PORTS}, and those of removed entries \
         are not given to others): remove some, or start a new session"
    )]
    NoPort {
        /// How many entries need one.
        forwards: usize,
    },
}

/// A range of addresses of which the plan leaves out .0 and .255, which some programs take for a network's own.
struct Addresses {
    base: u32,
    prefix: u32,
}

/// 127.64.0.0/10, for exact names.
const EXACT: Addresses = Addresses {
    base: u32::from_be_bytes([127, 64, 0, 0]),
    prefix: 10,
};

/// 127.128.0.0/9, for names under a suffix.
const UNDER_SUFFIX: Addresses = Addresses {
    base: u32::from_be_bytes([127, 128, 0, 0]),
    prefix: 9,
};

/// Host bytes in use in a /24: 1 to 254.
const HOSTS: u32 = 254;

impl Addresses {
    const fn places(&self) -> u32 {
        (1 << (24 - self.prefix)) * HOSTS
    }

    const fn home(&self, hash: u64) -> u32 {
        (hash % self.places() as u64) as u32
    }

    const fn at(&self, place: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + place / HOSTS * 256 + 1 + place % HOSTS)
    }

    fn place(&self, address: Ipv4Addr) -> Option<u32> {
        let offset = address.to_bits().checked_sub(self.base)?;
        let host = (offset % 256).checked_sub(1)?;
        let place = offset / 256 * HOSTS + host;
        (host < HOSTS && place < self.places()).then_some(place)
    }
}

/// Router ports in the order of preference: 10000 to 32767 first. From 32768 to 60999 the kernel takes the local ports of
/// the router's own connections (`ip_local_port_range`), and a port that one of those holds cannot be listened on; so
/// these come last.
const PORT_RANGES: [(u16, u16); 3] = [(10_000, 32_767), (61_000, 65_535), (32_768, 60_999)];

/// How many ports are a first choice: the first range.
const PRIMARY_PORTS: u32 = PORT_RANGES[0].1 as u32 - PORT_RANGES[0].0 as u32 + 1;

/// All of them, 10000 to 65535.
const PORTS: u32 = 65_535 - 10_000 + 1;

fn router_port(mut place: u32) -> Option<u16> {
    for (first, last) in PORT_RANGES {
        let size = u32::from(last - first) + 1;
        if place < size {
            return u16::try_from(u32::from(first) + place).ok();
        }
        place -= size;
    }
    None
}

fn place_of_port(port: u16) -> Option<u32> {
    let mut before = 0;
    for (first, last) in PORT_RANGES {
        if (first..=last).contains(&port) {
            return Some(before + u32::from(port - first));
        }
        before += u32::from(last - first) + 1;
    }
    None
}

impl Plan {
    /// The plan of a list that follows none.
    ///
    /// # Errors
    /// If the list has more exact names than addresses, or more ports than router ports.
    pub fn new(list: &Allowlist) -> Result<Self, PlanError> {
        Self::default().successor(list)
    }

    /// The plan of the list that replaces this plan's in a running process.
    ///
    /// Live entries keep their address and router port. What a removed entry had is its own for ever: it gets it back
    /// if it returns, and no other entry ever does, since a connection may still be on its way there.
    ///
    /// # Errors
    /// As [`Self::new`], with the removed entries counted.
    pub fn successor(&self, list: &Allowlist) -> Result<Self, PlanError> {
        let mut next = self.clone();
        next.plan_addresses(list)?;
        next.plan_ports(list)?;
        Ok(next)
    }

    /// The loopback address of a name that the list allows: its own if it is an exact entry's, else one by hash, which
    /// names under suffixes may share.
    #[must_use]
    pub fn address(&self, name: &HostName) -> Ipv4Addr {
        let hash = hash::name(name.as_str());
        match self.planned(name, hash) {
            Some(planned) if planned.live => EXACT.at(planned.place),
            _ => UNDER_SUFFIX.at(UNDER_SUFFIX.home(hash)),
        }
    }

    /// The exact name that has this address (for PTR). Names under a suffix cannot be told from theirs.
    #[must_use]
    pub fn name_at(&self, address: Ipv4Addr) -> Option<&HostName> {
        let place = EXACT.place(address)?;
        let is_it = |&index: &u32| self.at(index).is_some_and(|planned| planned.place == place);
        let planned = self.at(*self.by_place.find(spread(place), is_it)?)?;
        planned.live.then_some(&planned.name)
    }

    /// The raw TCP forwards, in the order of the file.
    #[must_use]
    pub fn forwards(&self) -> &[Forward] {
        &self.forwards
    }

    fn at(&self, index: u32) -> Option<&Planned> {
        self.names.get(index as usize)
    }

    fn planned(&self, name: &HostName, hash: u64) -> Option<&Planned> {
        let is_it = |&index: &u32| self.at(index).is_some_and(|planned| planned.name == *name);
        self.at(*self.by_name.find(hash, is_it)?)
    }

    fn plan_addresses(&mut self, list: &Allowlist) -> Result<(), PlanError> {
        let mut places = Places::new(EXACT.places(), EXACT.places());
        for planned in &mut self.names {
            places.take(planned.place);
            let name = planned.name.as_str();
            planned.live = list.exact(name, hash::name(name)).is_some();
        }
        let known = self.names.len();
        let exact = || list.entries().filter(|entry| entry.rule() == Rule::Exact);
        self.names.reserve(exact().count().saturating_sub(known));
        let hash_of = |&index: &u32| {
            let planned = self.names.get(index as usize);
            planned.map_or(0, |planned| hash::name(planned.name.as_str()))
        };
        self.by_name.reserve(exact().count().saturating_sub(known), hash_of);
        for entry in exact() {
            let name = entry.name();
            let hash = hash::name(name.as_str());
            let (names, by_name) = (&mut self.names, &mut self.by_name);
            let new = u32::try_from(names.len()).unwrap_or(u32::MAX);
            let slot = by_name.entry(
                hash,
                |&index| names.get(index as usize).is_some_and(|planned| planned.name == *name),
                |&index| {
                    names
                        .get(index as usize)
                        .map_or(0, |planned| hash::name(planned.name.as_str()))
                },
            );
            if let hashbrown::hash_table::Entry::Vacant(free) = slot {
                free.insert(new);
                names.push(Planned {
                    name: name.clone(),
                    place: EXACT.home(hash),
                    live: true,
                });
            }
        }
        let names = self.names.len();
        let no_address = |Full| PlanError::NoAddress { names };
        if names > EXACT.places() as usize {
            return Err(no_address(Full));
        }
        let mut claims: Vec<Claim> = (0..)
            .zip(&self.names)
            .skip(known)
            .map(|(owner, planned)| Claim {
                home: planned.place,
                owner,
            })
            .collect();
        let text = |claim: &Claim| {
            self.names
                .get(claim.owner as usize)
                .map(|planned| planned.name.as_str())
        };
        claims.sort_unstable_by(|a, b| a.home.cmp(&b.home).then_with(|| text(a).cmp(&text(b))));
        let all = &mut self.names;
        places
            .assign(&claims, |owner, place| {
                if let Some(planned) = all.get_mut(owner as usize) {
                    planned.place = place;
                }
            })
            .map_err(no_address)?;
        let place_of = |&index: &u32| all.get(index as usize).map_or(0, |planned| spread(planned.place));
        self.by_place.reserve(claims.len(), place_of);
        for claim in &claims {
            self.by_place
                .insert_unique(place_of(&claim.owner), claim.owner, place_of);
        }
        Ok(())
    }

    fn plan_ports(&mut self, list: &Allowlist) -> Result<(), PlanError> {
        let mut places = Places::new(PRIMARY_PORTS, PORTS);
        for &port in self.router_ports.values() {
            place_of_port(port).map(|place| places.take(place));
        }
        let with_port = || list.entries().filter_map(|entry| Some((entry, entry.port()?)));
        let new: Vec<(HostName, u16)> = with_port()
            .map(|(entry, port)| (entry.name().clone(), port))
            .filter(|key| !self.router_ports.contains_key(key))
            .collect();
        let forwards = self.router_ports.len() + new.len();
        let no_port = |Full| PlanError::NoPort { forwards };
        if forwards > PORTS as usize {
            return Err(no_port(Full));
        }
        let mut claims: Vec<Claim> = (0..)
            .zip(&new)
            .map(|(owner, (name, port))| Claim {
                home: (hash::name_and_port(name.as_str(), *port) % u64::from(PRIMARY_PORTS)) as u32,
                owner,
            })
            .collect();
        claims.sort_unstable_by(|a, b| {
            let key = |claim: &Claim| new.get(claim.owner as usize);
            a.home.cmp(&b.home).then_with(|| key(a).cmp(&key(b)))
        });
        let router_ports = &mut self.router_ports;
        places
            .assign(&claims, |owner, place| {
                if let (Some(key), Some(port)) = (new.get(owner as usize), router_port(place)) {
                    router_ports.insert(key.clone(), port);
                }
            })
            .map_err(no_port)?;
        self.forwards = with_port()
            .filter_map(|(entry, port)| {
                let name = entry.name().clone();
                Some(Forward {
                    address: self.address(&name),
                    router_port: *self.router_ports.get(&(name.clone(), port))?,
                    name,
                    port,
                    line: entry.line(),
                })
            })
            .collect();
        Ok(())
    }
}

/// A place's hash for the table of places: neighbours in probing must not be neighbours there.
const fn spread(place: u32) -> u64 {
    (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
