//! How often somebody may try to pair: a guess is hopeless, and need not cost us anything either.

use std::collections::HashMap;
use std::net::IpAddr;
use tokio::sync::Mutex;

/// Tries that did not work, of one address in [`WINDOW_MS`].
const TRIES_MAX: u32 = 10;
const WINDOW_MS: i64 = 60_000;
/// Addresses counted at once.
const ADDRESSES_MAX: usize = 1024;

/// Tries that did not work, by address.
#[derive(Debug, Default)]
pub(super) struct Tries(Mutex<HashMap<IpAddr, Counted>>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    since_ms: i64,
    times: u32,
}

impl Tries {
    /// Whether `peer` may try now.
    pub(super) async fn may(&self, peer: IpAddr, now_ms: i64) -> bool {
        let mut counted = self.0.lock().await;
        counted.retain(|_, one| now_ms - one.since_ms < WINDOW_MS);
        counted.len() < ADDRESSES_MAX
            && counted
                .get(&peer)
                .is_none_or(|counted| counted.times < TRIES_MAX)
    }

    pub(super) async fn failed(&self, peer: IpAddr, now_ms: i64) {
        let mut counted = self.0.lock().await;
        let one = counted.entry(peer).or_insert(Counted {
            since_ms: now_ms,
            times: 0,
        });
        one.times += 1;
    }
}

/// Requests of one token in [`RATE_WINDOW_MS`].
const REQUESTS_MAX: u32 = 3_000;
const RATE_WINDOW_MS: i64 = 10_000;
/// Tokens counted at once; there are fewer.
const TOKENS_MAX: usize = 4096;

/// How often each token was shown lately.
#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<HashMap<String, Counted>>);

impl Rates {
    /// Counts a request; whether it may go on.
    pub(super) async fn may(&self, token: &str, now_ms: i64) -> bool {
        let mut counted = self.0.lock().await;
        if counted.len() >= TOKENS_MAX {
            counted.retain(|_, one| now_ms - one.since_ms < RATE_WINDOW_MS);
        }
        let one = counted.entry(token.to_owned()).or_insert(Counted {
            since_ms: now_ms,
            times: 0,
        });
        if now_ms - one.since_ms >= RATE_WINDOW_MS {
            *one = Counted {
                since_ms: now_ms,
                times: 0,
            };
        }
        one.times = one.times.saturating_add(1);
        one.times <= REQUESTS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_that_never_rests_is_held_back_and_no_other() {
        let rates = Rates::default();
        for _ in 0..REQUESTS_MAX {
            assert!(rates.may("busy", 0).await);
        }
        assert!(!rates.may("busy", 1).await);
        assert!(rates.may("calm", 1).await);
        assert!(rates.may("busy", RATE_WINDOW_MS).await);
    }

    #[tokio::test]
    async fn whoever_guesses_waits() {
        let (tries, peer) = (Tries::default(), IpAddr::from([127, 0, 0, 1]));
        for _ in 0..TRIES_MAX {
            assert!(tries.may(peer, 0).await);
            tries.failed(peer, 0).await;
        }
        assert!(!tries.may(peer, 1).await);
        assert!(tries.may([127, 0, 0, 2].into(), 1).await);
        assert!(tries.may(peer, WINDOW_MS).await);
    }
}
