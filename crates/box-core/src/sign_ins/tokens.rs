//! Tokens of programs (D29): made and shown once, kept as a hash, good for what their maker said
//! and until they end or are revoked.

use super::{Known, SECRET_BYTES, hash, tier_of, tier_word};
use crate::boxes::{self, FindError};
use crate::caller::Caller;
use crate::host::Host;
use crate::store::{Durability, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use box_api::BoxId;
use box_api::page::{
    TOKEN_DAYS, TOKEN_DAYS_MAX, TOKEN_LABEL_CHARS_MAX, TOKEN_PREFIX, TokenAsk, TokenInfo,
    TokenScope,
};
use zeroize::Zeroizing;

mod rows;

/// Tokens of one owner.
const TOKENS_PER_OWNER_MAX: usize = 64;
const DAY_MS: i64 = 24 * 60 * 60_000;
/// How exactly it is known when a token was shown last.
const SEEN_EVERY_MS: i64 = 60_000;

/// Why a token was not made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(
        "a label has 1 to {TOKEN_LABEL_CHARS_MAX} characters, none of them a control character"
    )]
    Label,
    #[error("a token lives 1 to {TOKEN_DAYS_MAX} days, not {0}")]
    Days(u32),
    #[error("a token of scope `acp` needs the box it is for")]
    NoBox,
    #[error("a token of scope `{}` is for no single box", .0.word())]
    OneBox(TokenScope),
    #[error("there are {TOKENS_PER_OWNER_MAX} tokens already")]
    TooMany,
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a token was not revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeTokenError {
    #[error("there is no token `{0}`")]
    Unknown(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A token that was just made.
#[expect(
    missing_debug_implementations,
    reason = "whoever has the token is let in"
)]
pub struct Made {
    pub token: Zeroizing<String>,
    pub info: TokenInfo,
}

/// Whom a token stands for, and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub known: Known,
    pub scope: TokenScope,
    /// Of `acp`: its box.
    pub box_id: Option<BoxId>,
}

/// A token as it is kept, but for its key.
#[derive(Debug, Clone)]
struct Kept {
    info: TokenInfo,
    tier: crate::caller::Tier,
    box_id: Option<BoxId>,
}

/// Makes a token for the caller.
///
/// # Errors
/// [`TokenError`]
pub async fn add(host: &Host, caller: &Caller, asked: TokenAsk) -> Result<Made, TokenError> {
    let days = asked.days.unwrap_or(TOKEN_DAYS);
    check(&asked, days)?;
    let record = match (&asked.name, asked.scope) {
        (Some(name), TokenScope::Acp) => Some(boxes::find(host, caller, name).await?),
        (None, TokenScope::Acp) => return Err(TokenError::NoBox),
        (None, TokenScope::Read | TokenScope::Full | TokenScope::Metrics) => None,
        (Some(_), scope @ (TokenScope::Read | TokenScope::Full | TokenScope::Metrics)) => {
            return Err(TokenError::OneBox(scope));
        }
    };
    let bytes = Zeroizing::new(host.random.bytes::<SECRET_BYTES>());
    let token = Zeroizing::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(*bytes)));
    let key = hash(&token);
    let now_ms = host.now_ms();
    let info = TokenInfo {
        id: BoxId::from_random(host.random.bytes()).to_string()[..8].to_owned(),
        owner: caller.owner,
        label: asked.label,
        scope: asked.scope,
        name: asked.name,
        made_at_ms: now_ms,
        seen_at_ms: None,
        ends_at_ms: now_ms + i64::from(days) * DAY_MS,
    };
    let kept = Kept {
        info: info.clone(),
        tier: caller.tier,
        box_id: record.map(|record| record.id),
    };
    let there = host.store.write(Durability::Full, move |tables| {
        rows::drop_old(tables, now_ms)?;
        if rows::count(tables, kept.info.owner)? >= TOKENS_PER_OWNER_MAX {
            return Ok(false);
        }
        rows::insert(tables, &key, &kept)?;
        Ok(true)
    });
    if there.await? {
        Ok(Made { token, info })
    } else {
        Err(TokenError::TooMany)
    }
}

fn check(asked: &TokenAsk, days: u32) -> Result<(), TokenError> {
    let chars = asked.label.chars().count();
    if chars == 0 || chars > TOKEN_LABEL_CHARS_MAX || asked.label.chars().any(char::is_control) {
        return Err(TokenError::Label);
    }
    if days == 0 || days > TOKEN_DAYS_MAX {
        return Err(TokenError::Days(days));
    }
    Ok(())
}

/// Whom a token stands for; `None` when nobody, or not any more.
///
/// # Errors
/// What the store said.
pub async fn known(host: &Host, token: &str) -> Result<Option<Shown>, StoreError> {
    let key = hash(token);
    let now_ms = host.now_ms();
    let kept = host
        .store
        .read(move |tables| rows::by_key(tables, &key, now_ms))
        .await?;
    let Some(Kept { info, tier, box_id }) = kept else {
        return Ok(None);
    };
    if info
        .seen_at_ms
        .is_none_or(|seen| now_ms - seen >= SEEN_EVERY_MS)
    {
        let id = info.id.clone();
        let seen = host.store.write(Durability::Prompt, move |tables| {
            rows::seen(tables, &id, now_ms)
        });
        seen.await?;
    }
    Ok(Some(Shown {
        known: Known {
            sign_in: info.id,
            caller: Caller {
                owner: info.owner,
                tier,
            },
        },
        scope: info.scope,
        box_id,
    }))
}

/// The tokens the caller may see, newest first.
///
/// # Errors
/// What the store said.
pub async fn list(host: &Host, caller: &Caller) -> Result<Vec<TokenInfo>, StoreError> {
    let now_ms = host.now_ms();
    let all = host
        .store
        .read(move |tables| rows::all(tables, now_ms))
        .await?;
    let own = all.into_iter().map(|kept| kept.info);
    Ok(own.filter(|info| caller.may(&info.owner)).collect())
}

/// Ends a token; whoever is served by it is out at once.
///
/// # Errors
/// [`RevokeTokenError`]
pub async fn revoke(host: &Host, caller: &Caller, id: &str) -> Result<(), RevokeTokenError> {
    let unknown = || RevokeTokenError::Unknown(id.to_owned());
    let all = list(host, caller).await?;
    if !all.iter().any(|info| info.id == id) {
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

/// Whether a token still is.
///
/// # Errors
/// What the store said.
pub async fn stands(host: &Host, id: &str) -> Result<bool, StoreError> {
    let (id, now_ms) = (id.to_owned(), host.now_ms());
    host.store
        .read(move |tables| rows::stands(tables, &id, now_ms))
        .await
}
