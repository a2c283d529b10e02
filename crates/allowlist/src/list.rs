//! The allowlist in memory, and the one decision.

use std::fmt;

use hashbrown::HashTable;
use hashbrown::hash_table;

use crate::{Entry, HostName, Refusal, Rule, hash};

/// What is allowed. Without an entry, nothing is.
///
/// A question costs the number of labels of the name it asks about, however many entries there are: tables of numbers
/// into `entries`, found by a hash that one pass computes for a name and all its parents.
#[derive(Default)]
pub struct Allowlist {
    entries: Vec<Entry>,
    /// Exact entries by name. Of `host` and `host:port` the first, so that it is the plain line that answers for 443.
    exact: HashTable<u32>,
    /// Entries with a port, by name and port.
    ports: HashTable<u32>,
    /// Suffix entries by name.
    suffixes: HashTable<u32>,
    /// Proper parents of all entries' names.
    parents: HashTable<Parent>,
    /// Hashes of one name and its parents, while it is inserted.
    scratch: Vec<(usize, u64)>,
}

/// A parent domain, as a part of an entry's name.
#[derive(Clone, Copy)]
struct Parent {
    entry: u32,
    /// A name has at most 253 bytes.
    start: u8,
}

/// What a name is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// An answer from DNS.
    Name,
    /// TLS by SNI on port 443, or HTTP by Host on port 80.
    Web,
    /// A raw TCP forward to this port. Also for 80 and 443, if an entry names them.
    Port(u16),
}

/// A verdict in favour, with the entry that gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed<'a> {
    entry: &'a Entry,
}

impl<'a> Allowed<'a> {
    /// The most specific entry that allows the request: an exact one before the longest suffix.
    #[must_use]
    pub const fn entry(self) -> &'a Entry {
        self.entry
    }
}

impl Allowlist {
    /// Whether `name` may be reached for `service`: the one decision that DNS, TLS, HTTP, forwards and `--check` share.
    ///
    /// # Errors
    /// [`Refusal::NameNotAllowed`] if no entry covers the name, [`Refusal::PortNotAllowed`] if one does, but not on
    /// this port.
    pub fn decide(&self, name: &HostName, service: Service) -> Result<Allowed<'_>, Refusal> {
        let covering = || self.covering(name.as_str()).ok_or(Refusal::NameNotAllowed);
        let entry = match service {
            Service::Name | Service::Web => covering()?,
            Service::Port(port) => match self.with_port(name.as_str(), port) {
                Some(entry) => entry,
                None => return Err(covering().err().unwrap_or(Refusal::PortNotAllowed)),
            },
        };
        Ok(Allowed { entry })
    }

    /// Whether an allowed name lies below `name`, so that `name` exists without data of its own (an empty non-terminal,
    /// RFC 8020): DNS answers NODATA and not NXDOMAIN.
    #[must_use]
    pub fn has_names_below(&self, name: &HostName) -> bool {
        let name = name.as_str();
        self.parents
            .find(hash::name(name), |&parent| self.parent_text(parent) == name)
            .is_some()
    }

    /// The entries in the order of the file, each meaning once.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many entries there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is allowed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry that makes `name` an exact name (rather than one under a suffix).
    pub(crate) fn exact(&self, name: &str, hash: u64) -> Option<&Entry> {
        let index = self.exact.find(hash, |&index| self.text(index) == name)?;
        self.entry(*index)
    }

    /// The most specific entry that covers `name`.
    fn covering(&self, name: &str) -> Option<&Entry> {
        let mut found = None;
        for (start, hash) in hash::name_and_parents(name) {
            let part = name.get(start..)?;
            if let Some(entry) = self.suffix(part, hash) {
                found = Some(entry);
            }
            if start == 0
                && let Some(entry) = self.exact(name, hash)
            {
                found = Some(entry);
            }
        }
        found
    }

    /// The nearest suffix entry above `name`, other than one of `name` itself.
    pub(crate) fn suffix_above(&self, name: &str) -> Option<&Entry> {
        if self.suffixes.is_empty() {
            return None;
        }
        hash::name_and_parents(name)
            .filter(|&(start, _)| start > 0)
            .filter_map(|(start, hash)| self.suffix(name.get(start..)?, hash))
            .last()
    }

    /// The suffix entry with exactly this name.
    pub(crate) fn suffix(&self, name: &str, hash: u64) -> Option<&Entry> {
        let index = self.suffixes.find(hash, |&index| self.text(index) == name)?;
        self.entry(*index)
    }

    fn with_port(&self, name: &str, port: u16) -> Option<&Entry> {
        let is_it = |&index: &u32| self.entry(index).is_some_and(|entry| has_port(entry, name, port));
        let index = self.ports.find(hash::name_and_port(name, port), is_it)?;
        self.entry(*index)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index as usize)
    }

    fn text(&self, index: u32) -> &str {
        text(&self.entries, index)
    }

    fn parent_text(&self, parent: Parent) -> &str {
        parent_text(&self.entries, parent)
    }

    /// An empty list with room for `entries`.
    pub(crate) fn with_capacity_for(entries: &[Entry]) -> Self {
        let ports = entries.iter().filter(|entry| entry.port().is_some()).count();
        let suffixes = entries.iter().filter(|entry| entry.rule() == Rule::Suffix).count();
        Self {
            entries: Vec::with_capacity(entries.len()),
            exact: HashTable::with_capacity(entries.len() - suffixes),
            ports: HashTable::with_capacity(ports),
            suffixes: HashTable::with_capacity(suffixes),
            parents: HashTable::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds an entry, unless one with the same meaning is there: then both are handed back, the older one first.
    ///
    /// # Errors
    /// The older entry, and the one that was to be added.
    pub(crate) fn insert(&mut self, entry: Entry) -> Result<(), (&Entry, Entry)> {
        // The parser bounds a file to less than 2^32 bytes.
        let new = self.entries.len() as u32;
        self.entries.push(entry);
        let entries = &self.entries;
        let Some(entry) = entries.last() else { return Ok(()) };
        let name = entry.name().as_str();
        let hash_of = |&index: &u32| hash::name(text(entries, index));
        let by_name = |table: &mut HashTable<u32>| {
            let slot = table.entry(hash::name(name), |&index| text(entries, index) == name, hash_of);
            match slot {
                hash_table::Entry::Occupied(mut there) => {
                    // The plain line answers for a name before those with a port.
                    let old = *there.get();
                    if entry.port().is_none() && port_of(entries, old).is_some() {
                        *there.get_mut() = new;
                    }
                    Some(old)
                }
                hash_table::Entry::Vacant(free) => {
                    free.insert(new);
                    None
                }
            }
        };
        let same = match (entry.rule(), entry.port()) {
            (Rule::Suffix, _) => by_name(&mut self.suffixes),
            (Rule::Exact, None) => by_name(&mut self.exact).filter(|&old| port_of(entries, old).is_none()),
            (Rule::Exact, Some(port)) => {
                by_name(&mut self.exact);
                let is_it = |&index: &u32| {
                    entries
                        .get(index as usize)
                        .is_some_and(|entry| has_port(entry, name, port))
                };
                let hash_of = |&index: &u32| {
                    hash::name_and_port(text(entries, index), port_of(entries, index).unwrap_or_default())
                };
                match self.ports.entry(hash::name_and_port(name, port), is_it, hash_of) {
                    hash_table::Entry::Occupied(there) => Some(*there.get()),
                    hash_table::Entry::Vacant(free) => {
                        free.insert(new);
                        None
                    }
                }
            }
        };
        if let Some(old) = same {
            let Some(again) = self.entries.pop() else { return Ok(()) };
            return self.entries.get(old as usize).map_or(Ok(()), |old| Err((old, again)));
        }
        self.insert_parents(new);
        Ok(())
    }

    fn insert_parents(&mut self, entry: u32) {
        let entries = &self.entries;
        let name = text(entries, entry);
        self.scratch.clear();
        self.scratch.extend(hash::name_and_parents(name));
        // The nearest first: if a parent is there, so are its own parents.
        for &(start, hash) in self.scratch.iter().rev().skip(1) {
            let (Some(part), Ok(place)) = (name.get(start..), u8::try_from(start)) else {
                return;
            };
            let slot = self.parents.entry(
                hash,
                |&parent| parent_text(entries, parent) == part,
                |&parent| hash::name(parent_text(entries, parent)),
            );
            match slot {
                hash_table::Entry::Occupied(_) => return,
                hash_table::Entry::Vacant(free) => free.insert(Parent { entry, start: place }),
            };
        }
    }
}

fn text(entries: &[Entry], index: u32) -> &str {
    entries.get(index as usize).map_or("", |entry| entry.name().as_str())
}

fn parent_text(entries: &[Entry], parent: Parent) -> &str {
    text(entries, parent.entry)
        .get(usize::from(parent.start)..)
        .unwrap_or_default()
}

fn port_of(entries: &[Entry], index: u32) -> Option<u16> {
    entries.get(index as usize).and_then(Entry::port)
}

fn has_port(entry: &Entry, name: &str, port: u16) -> bool {
    entry.port() == Some(port) && entry.name().as_str() == name
}

impl fmt::Debug for Allowlist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}
