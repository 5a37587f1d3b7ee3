//! Networks: ranges of addresses an owner denies, as `203.0.113.0/24` or `2001:db8::/32`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Why a text is not a network. The text names the entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    #[error("`{entry}` is not a network such as `203.0.113.0/24`")]
    Form { entry: String },
    #[error("`{entry}`: at most {bits_max} bits of it can count")]
    Prefix { entry: String, bits_max: u8 },
    #[error("`{entry}` is an address inside a network, not the network `{network}`")]
    HostBits { entry: String, network: String },
    #[error("`{entry}` would deny every address of its kind")]
    Everything { entry: String },
}

/// A range of addresses: those whose first `prefix` bits are those of `base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

impl Network {
    /// Reads `address/bits`; an address alone is a network of one.
    ///
    /// # Errors
    /// [`NetworkError`], which names the entry.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let entry = || text.to_owned();
        let form = || NetworkError::Form { entry: entry() };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let base: IpAddr = address.parse().map_err(|_| form())?;
        let bits_max = bits_of(base);
        let prefix = match bits {
            None => bits_max,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) && !bits.is_empty() => {
                bits.parse().unwrap_or(u8::MAX)
            }
            Some(_) => return Err(form()),
        };
        if prefix > bits_max {
            return Err(NetworkError::Prefix {
                entry: entry(),
                bits_max,
            });
        }
        if prefix == 0 {
            return Err(NetworkError::Everything { entry: entry() });
        }
        let network = Self {
            base: masked(base, prefix),
            prefix,
        };
        if network.base != base {
            return Err(NetworkError::HostBits {
                entry: entry(),
                network: network.to_string(),
            });
        }
        Ok(network)
    }

    /// Whether an address lies in it. An IPv4 address in its IPv6 spelling counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.base.is_ipv4() && masked(address, self.prefix) == self.base
    }

    /// Whether every address of `other` lies in it.
    pub fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.base)
    }
}

fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32)));
            IpAddr::V4((u32::from(address) & mask.unwrap_or(0)).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128)));
            IpAddr::V6((u128::from(address) & mask.unwrap_or(0)).into())
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;
    fn try_from(text: String) -> Result<Self, NetworkError> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_holds_its_addresses_and_no_neighbour() {
        for (network, inside, outside) in [
            ("203.0.113.0/24", "203.0.113.255", "203.0.114.0"),
            (
                "203.0.113.0/24",
                "::ffff:203.0.113.7",
                "::ffff:203.0.112.255",
            ),
            ("45.33.32.156", "45.33.32.156", "45.33.32.157"),
            ("128.0.0.0/1", "255.0.0.1", "127.255.255.255"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("2600::/12", "2606:4700::1111", "2a00::1"),
        ] {
            let parsed = Network::parse(network).unwrap();
            assert!(
                parsed.contains(inside.parse().unwrap()),
                "{network} {inside}"
            );
            assert!(
                !parsed.contains(outside.parse().unwrap()),
                "{network} {outside}"
            );
        }
        assert!(
            !Network::parse("::/1")
                .unwrap()
                .contains("1.2.3.4".parse().unwrap())
        );
    }

    #[test]
    fn what_is_no_network_is_refused_by_name() {
        for entry in [
            "",
            "x",
            "1.2.3.4/",
            "1.2.3.4/x",
            "1.2.3.4/33",
            "::1/129",
            "1.2.3.4/24",
            "0.0.0.0/0",
            "::/0",
            "1.2.3/24",
            "01.2.3.4",
            "1.2.3.4/+8",
            "1.2.3.4/999",
        ] {
            let error = Network::parse(entry).unwrap_err();
            assert!(error.to_string().contains(&format!("`{entry}`")), "{error}");
        }
        let error = Network::parse("203.0.113.7/24").unwrap_err();
        assert!(error.to_string().contains("`203.0.113.0/24`"), "{error}");
    }
}
