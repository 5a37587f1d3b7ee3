//! Who may use the page: links that pair one browser, and the browsers that were paired (D9, D30).
//!
//! A link is issued over the control socket, for whoever asked there; it lives minutes and works
//! once. What a browser then holds in its cookie is known here only by its hash. A sign-in that is
//! revoked is out at once: whoever serves it waits on [`SignIns::revoked`].

mod rows;
pub mod tokens;

use crate::caller::{Caller, Tier};
use crate::host::Host;
use crate::store::{Durability, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use box_api::page::{LINK_MS_MAX, PairingLink, SignIn};
use box_api::{BoxId, Owner};
use rows::Kept;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tokio::sync::watch;
use zeroize::Zeroizing;

/// Links of one owner that may wait to be used; the oldest goes first.
const LINKS_PER_OWNER_MAX: u32 = 8;
/// Sign-ins of one owner; the one not seen for longest goes first.
const SIGN_INS_PER_OWNER_MAX: u32 = 64;
/// A sign-in that is not seen for so long ends.
const IDLE_MS_MAX: i64 = 90 * 24 * 60 * 60_000;
/// How exactly it is known when a sign-in was seen last.
const SEEN_EVERY_MS: i64 = 60_000;
/// What is kept of what a browser calls itself.
const AGENT_CHARS_MAX: usize = 200;
/// Codes and cookies have 256 bits.
const SECRET_BYTES: usize = 32;

/// Whether there is a page, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Not known yet.
    Opening,
    /// `http://localhost:2697`
    At(String),
    /// Why there is none.
    Off(String),
}

/// The part of it that is not in the tables. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SignIns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    revoked: watch::Sender<u64>,
    place: watch::Sender<Place>,
}

impl Default for SignIns {
    fn default() -> Self {
        Self(Arc::new(Inner {
            revoked: watch::channel(0).0,
            place: watch::channel(Place::Opening).0,
        }))
    }
}

impl SignIns {
    /// Woken whenever a sign-in was revoked: look again at the one you serve.
    pub fn revoked(&self) -> watch::Receiver<u64> {
        self.0.revoked.subscribe()
    }

    /// Tells whoever serves one to look again.
    fn wake(&self) {
        self.0.revoked.send_modify(|count| *count += 1);
    }

    /// Says where the page is.
    pub fn set_place(&self, place: Place) {
        self.0.place.send_replace(place);
    }

    pub fn place(&self) -> watch::Receiver<Place> {
        self.0.place.subscribe()
    }
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("this host has no page: {0}")]
    NoPage(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a browser was not paired.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// Never was, was used, or is too old; which of them is not said.
    #[error("this pairing link does not work (any more)")]
    Unknown,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a sign-in was not revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    #[error("there is no sign-in `{0}`")]
    Unknown(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A browser that was just paired: what it is to hold from now on.
#[expect(
    missing_debug_implementations,
    reason = "whoever has the cookie is let in"
)]
pub struct Paired {
    pub sign_in: SignIn,
    pub cookie: Zeroizing<String>,
    /// What its page keeps beside the cookie and shows with it: browsers keep it by origin, ports
    /// and all.
    pub proof: Zeroizing<String>,
    pub caller: Caller,
}

/// Whom a cookie stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub sign_in: String,
    pub caller: Caller,
}

/// A link that pairs one browser with the caller.
///
/// # Errors
/// [`LinkError`]
pub async fn link(host: &Host, caller: &Caller) -> Result<PairingLink, LinkError> {
    let mut place = host.sign_ins.place();
    let known = place.wait_for(|place| *place != Place::Opening).await;
    let url = match known.map(|place| place.clone()) {
        Ok(Place::At(url)) => url,
        Ok(Place::Off(why)) => return Err(LinkError::NoPage(why)),
        Ok(Place::Opening) | Err(_) => return Err(LinkError::NoPage("it ends".to_owned())),
    };
    let (code, key) = secret(host);
    let now_ms = host.now_ms();
    let (caller, ends_at_ms) = (*caller, now_ms + LINK_MS_MAX);
    host.store
        .write(Durability::Prompt, move |tables| {
            rows::drop_old(tables, now_ms)?;
            rows::insert_link(tables, &key, caller, ends_at_ms)?;
            rows::trim_links(tables, caller.owner, LINKS_PER_OWNER_MAX)
        })
        .await?;
    Ok(PairingLink {
        url,
        code: code.to_string(),
        ends_at_ms,
    })
}

/// Pairs a browser that has a link's code. The link is used up, whatever comes after. `at` is the
/// name and port it came to, in lower case: the cookie is worth nothing at another.
///
/// # Errors
/// [`PairError`]
pub async fn pair(host: &Host, code: &str, agent: &str, at: &str) -> Result<Paired, PairError> {
    let link = hash(code);
    let ((cookie, _), (proof, _)) = (secret(host), secret(host));
    let shown = Shown {
        cookie: &cookie,
        proof: &proof,
        at,
    };
    let key = shown.key();
    let now_ms = host.now_ms();
    let id = BoxId::from_random(host.random.bytes()).to_string()[..8].to_owned();
    let agent = shortened(agent);
    let made = host
        .store
        .write(Durability::Full, move |tables| {
            let Some((owner, tier)) = rows::take_link(tables, &link, now_ms)? else {
                return Ok(None);
            };
            let sign_in = SignIn {
                id,
                owner,
                agent,
                made_at_ms: now_ms,
                seen_at_ms: now_ms,
                ends_at_ms: now_ms + IDLE_MS_MAX,
            };
            rows::insert(tables, &key, &sign_in, tier)?;
            rows::trim(tables, owner, SIGN_INS_PER_OWNER_MAX)?;
            Ok(Some((sign_in, Caller { owner, tier })))
        })
        .await?;
    let (sign_in, caller) = made.ok_or(PairError::Unknown)?;
    Ok(Paired {
        sign_in,
        cookie,
        proof,
        caller,
    })
}

/// What a browser shows to be let in.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "whoever has it is let in")]
pub struct Shown<'a> {
    pub cookie: &'a str,
    pub proof: &'a str,
    /// The name and port it came to, in lower case.
    pub at: &'a str,
}

impl Shown<'_> {
    /// Cookies know no ports, and one that was taken from a browser here could be shown elsewhere:
    /// it is only known together with its proof and with where it was given.
    fn key(self) -> Key {
        let hash = Sha256::new().chain_update(self.cookie).chain_update([0]);
        let hash = hash.chain_update(self.proof).chain_update([0]);
        hash.chain_update(self.at).finalize().into()
    }
}

/// Whom a browser stands for; `None` when nobody, or not any more.
///
/// # Errors
/// What the store said.
pub async fn known(host: &Host, shown: Shown<'_>) -> Result<Option<Known>, StoreError> {
    let key = shown.key();
    let now_ms = host.now_ms();
    let kept = host
        .store
        .read(move |tables| rows::by_key(tables, &key, now_ms))
        .await?;
    let Some(Kept { sign_in, tier }) = kept else {
        return Ok(None);
    };
    if now_ms - sign_in.seen_at_ms >= SEEN_EVERY_MS {
        let id = sign_in.id.clone();
        let seen = host.store.write(Durability::Prompt, move |tables| {
            rows::seen(tables, &id, now_ms, now_ms + IDLE_MS_MAX)
        });
        seen.await?;
    }
    Ok(Some(Known {
        caller: Caller {
            owner: sign_in.owner,
            tier,
        },
        sign_in: sign_in.id,
    }))
}

/// Whether a link of this code waits to be used; costs less than to pair.
///
/// # Errors
/// What the store said.
pub async fn waits(host: &Host, code: &str) -> Result<bool, StoreError> {
    let (key, now_ms) = (hash(code), host.now_ms());
    host.store
        .read(move |tables| rows::link_waits(tables, &key, now_ms))
        .await
}

/// Whether a sign-in, or a token, still is.
///
/// # Errors
/// What the store said.
pub async fn stands(host: &Host, id: &str) -> Result<bool, StoreError> {
    let (named, now_ms) = (id.to_owned(), host.now_ms());
    let is_sign_in = host
        .store
        .read(move |tables| rows::stands(tables, &named, now_ms));
    Ok(is_sign_in.await? || tokens::stands(host, id).await?)
}

/// The sign-ins the caller may see, newest first.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, caller: &Caller) -> Result<Vec<SignIn>, StoreError> {
    let now_ms = host.now_ms();
    let mut all = host
        .store
        .read(move |tables| rows::all(tables, now_ms))
        .await?;
    all.retain(|sign_in| caller.may(&sign_in.owner));
    Ok(all)
}

/// Ends a sign-in; whoever is served by it is out at once.
///
/// # Errors
/// [`RevokeError`]
pub async fn revoke(host: &Host, caller: &Caller, id: &str) -> Result<(), RevokeError> {
    let unknown = || RevokeError::Unknown(id.to_owned());
    let all = list(host, caller).await?;
    if !all.iter().any(|sign_in| sign_in.id == id) {
        return Err(unknown());
    }
    let gone = id.to_owned();
    let removed = host
        .store
        .write(Durability::Full, move |tables| rows::remove(tables, &gone))
        .await?;
    host.sign_ins.wake();
    if removed { Ok(()) } else { Err(unknown()) }
}

type Key = [u8; SECRET_BYTES];

fn secret(host: &Host) -> (Zeroizing<String>, Key) {
    let bytes = Zeroizing::new(host.random.bytes::<SECRET_BYTES>());
    let text = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
    let key = hash(&text);
    (text, key)
}

/// A secret of 256 bits needs no salt and no slow hash.
fn hash(text: &str) -> Key {
    Sha256::digest(text.as_bytes()).into()
}

fn shortened(agent: &str) -> String {
    let plain = agent.chars().filter(|c| !c.is_control());
    plain.take(AGENT_CHARS_MAX).collect()
}

fn tier_word(tier: Tier) -> &'static str {
    match tier {
        Tier::Admin => "admin",
        Tier::Restricted => "restricted",
    }
}

/// What cannot be read is trusted with the least.
fn tier_of(word: &str) -> Tier {
    if word == tier_word(Tier::Admin) {
        Tier::Admin
    } else {
        Tier::Restricted
    }
}

pub(crate) fn owner_of(text: String) -> rusqlite::Result<Owner> {
    Owner::try_from(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })
}
