//! Which fake address stands for which name in one box. Append-only for the life of the box.

use box_api::egress::{HostName, MappedName};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// 198.18.0.0, the range every name of a box lies in (RFC 2544's benchmarking range, `/15`).
const RANGE_BASE: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const RANGE_SIZE: u32 = 1 << 17;
/// The first /28 is the box's own: its address, its resolver.
const FIRST_OFFSET: u32 = 16;
/// The last two addresses are the refusal address and one never given out.
const END_OFFSET: u32 = RANGE_SIZE - 2;
/// What a refused name is answered with; who connects there is told why.
pub(crate) const REFUSAL_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);

/// The map is full: so many names, one box never needs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MapFull;

/// A name's address, and whether the box just learned it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Before(Ipv4Addr),
    Now(Ipv4Addr),
}

pub(crate) struct NameMap {
    by_name: HashMap<HostName, Ipv4Addr>,
    by_addr: HashMap<Ipv4Addr, HostName>,
    next_offset: u32,
    end_offset: u32,
}

impl NameMap {
    /// Takes up what the box knew before. Entries outside the range, and second ones for a name
    /// or an address, are left out.
    pub(crate) fn restore(known: &[MappedName]) -> Self {
        let mut map = Self {
            by_name: HashMap::new(),
            by_addr: HashMap::new(),
            next_offset: FIRST_OFFSET,
            end_offset: END_OFFSET,
        };
        for MappedName { name, addr } in known {
            let offset = u32::from(*addr).wrapping_sub(RANGE_BASE);
            let in_range = (FIRST_OFFSET..END_OFFSET).contains(&offset);
            let is_new = !map.by_name.contains_key(name) && !map.by_addr.contains_key(addr);
            if in_range && is_new {
                map.insert(name.clone(), *addr);
                map.next_offset = map.next_offset.max(offset + 1);
            }
        }
        map
    }

    pub(crate) fn name_of(&self, addr: Ipv4Addr) -> Option<&HostName> {
        self.by_addr.get(&addr)
    }

    /// The name's address; a new one if it has none.
    pub(crate) fn give(&mut self, name: &HostName) -> Result<Given, MapFull> {
        if let Some(addr) = self.by_name.get(name) {
            return Ok(Given::Before(*addr));
        }
        if self.next_offset >= self.end_offset {
            return Err(MapFull);
        }
        let addr = Ipv4Addr::from(RANGE_BASE + self.next_offset);
        self.next_offset += 1;
        self.insert(name.clone(), addr);
        Ok(Given::Now(addr))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Every name, in no order.
    pub(crate) fn all(&self) -> Vec<MappedName> {
        let entry = |(name, addr): (&HostName, &Ipv4Addr)| MappedName {
            name: name.clone(),
            addr: *addr,
        };
        self.by_name.iter().map(entry).collect()
    }

    fn insert(&mut self, name: HostName, addr: Ipv4Addr) {
        self.by_addr.insert(addr, name.clone());
        self.by_name.insert(name, addr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn name_keeps_its_address_and_two_names_never_share_one() {
        let mut map = NameMap::restore(&[]);
        let first = Ipv4Addr::new(198, 18, 0, 16);
        assert_eq!(map.give(&name("a.test")), Ok(Given::Now(first)));
        assert_eq!(
            map.give(&name("b.test")),
            Ok(Given::Now(Ipv4Addr::new(198, 18, 0, 17)))
        );
        assert_eq!(map.give(&name("a.test")), Ok(Given::Before(first)));
        assert_eq!(map.name_of(first), Some(&name("a.test")));
        assert_eq!(map.name_of(Ipv4Addr::new(198, 18, 0, 99)), None);
    }

    #[test]
    fn restored_map_goes_on_behind_what_was_there() {
        let known = MappedName {
            name: name("a.test"),
            addr: Ipv4Addr::new(198, 18, 3, 0),
        };
        let outside = MappedName {
            name: name("x.test"),
            addr: Ipv4Addr::new(198, 18, 0, 2),
        };
        let refusal = MappedName {
            name: name("y.test"),
            addr: REFUSAL_ADDRESS,
        };
        let mut map = NameMap::restore(&[known.clone(), outside, refusal]);
        assert_eq!(map.all(), [known]);
        assert_eq!(
            map.give(&name("b.test")),
            Ok(Given::Now(Ipv4Addr::new(198, 18, 3, 1)))
        );
    }

    #[test]
    fn full_map_refuses_new_names_and_keeps_the_old_ones() {
        let last = MappedName {
            name: name("last.test"),
            addr: Ipv4Addr::new(198, 19, 255, 253),
        };
        let mut map = NameMap::restore(std::slice::from_ref(&last));
        assert_eq!(map.give(&name("new.test")), Err(MapFull));
        assert_eq!(map.give(&last.name), Ok(Given::Before(last.addr)));
    }
}
