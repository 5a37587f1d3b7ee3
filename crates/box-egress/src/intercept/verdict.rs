//! Judges what a request to a host with a credential carries: the box's own placeholder, which is
//! swapped; nothing, which is fine; anything else that could log in there, which is refused
//! (catalogue §2.7). Pure.

use super::grant::Grant;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use box_api::BoxId;
use box_api::egress::Carriage;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

/// Headers that log somebody in somewhere.
const CREDENTIAL_HEADERS: [&str; 54] = [
    "access-token",
    "anthropic-api-key",
    "api-key",
    "apikey",
    "auth-token",
    "authorization",
    "circle-token",
    "cookie",
    "cookie2",
    "dd-api-key",
    "dd-application-key",
    "deploy-token",
    "job-token",
    "ocp-apim-subscription-key",
    "openai-api-key",
    "private-token",
    "proxy-authorization",
    "token",
    "x-access-token",
    "x-amz-security-token",
    "x-anthropic-api-key",
    "x-api-key",
    "x-api-token",
    "x-apikey",
    "x-auth",
    "x-auth-email",
    "x-auth-key",
    "x-auth-token",
    "x-authorization",
    "x-bearer-token",
    "x-client-secret",
    "x-consul-token",
    "x-figma-token",
    "x-forwarded-access-token",
    "x-functions-key",
    "x-gemini-api-key",
    "x-github-token",
    "x-gitlab-token",
    "x-goog-api-key",
    "x-goog-iam-authorization-token",
    "x-id-token",
    "x-jwt-assertion",
    "x-key",
    "x-oauth-token",
    "x-password",
    "x-rapidapi-key",
    "x-refresh-token",
    "x-registry-auth",
    "x-secret",
    "x-secret-key",
    "x-session-token",
    "x-shopify-access-token",
    "x-token",
    "x-vault-token",
];

/// Query parameters that do the same.
const CREDENTIAL_PARAMETERS: [&str; 41] = [
    "access-token",
    "access_key",
    "access_token",
    "api-key",
    "api-token",
    "api_key",
    "api_token",
    "apikey",
    "apitoken",
    "app_key",
    "auth",
    "auth-token",
    "auth_key",
    "auth_token",
    "authorization",
    "awsaccesskeyid",
    "bearer",
    "client_secret",
    "credentials",
    "id_token",
    "jwt",
    "key",
    "oauth_signature",
    "oauth_token",
    "passwd",
    "password",
    "pat",
    "personal_access_token",
    "private_key",
    "private_token",
    "refresh_token",
    "secret",
    "secret_key",
    "session_token",
    "subscription-key",
    "token",
    "x-amz-credential",
    "x-amz-security-token",
    "x-amz-signature",
    "x-api-key",
    "x-goog-signature",
];

/// Cookies of content delivery networks, which log nobody in.
const HARMLESS_COOKIES: [&str; 6] = [
    "__cf_bm",
    "__cflb",
    "__cfruid",
    "__cfwaitingroom",
    "_cfuvid",
    "cf_clearance",
];

/// Stands where a password would, when the token is the user's name.
const PASSWORD_THAT_IS_NONE: &str = "x-oauth-basic";

/// Padding may be there or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a request is not passed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offence {
    /// A credential that is not this box's placeholder.
    ForeignCredential,
    /// A placeholder of another box, or of this box for another host.
    ForeignPlaceholder { belongs_to: BoxId },
    /// The placeholder is the box's own, the credential is not there.
    CredentialMissing,
}

/// A header to put in place of the one that came; `None` takes an empty one away.
pub(crate) struct Swap {
    name: HeaderName,
    value: Option<HeaderValue>,
}

impl Swap {
    /// Whether a credential takes the place of a placeholder.
    pub(crate) fn is_secret(&self) -> bool {
        self.value.is_some()
    }

    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        match self.value {
            Some(value) => drop(headers.insert(self.name, value)),
            None => drop(headers.remove(self.name)),
        }
    }
}

pub(crate) fn is_credential_header(name: &HeaderName) -> bool {
    CREDENTIAL_HEADERS.contains(&name.as_str())
}

/// Whether a cookie can be passed on to and from a host with a credential.
pub(crate) fn is_harmless_cookie(name: &str) -> bool {
    HARMLESS_COOKIES.contains(&name)
}

/// What a request becomes on its way out.
pub(crate) struct Swaps {
    pub(crate) headers: Vec<Swap>,
    /// The query that goes out instead; `None` where it stays as it is.
    pub(crate) query: Option<Zeroizing<String>>,
}

/// Judges headers and query. `owner_of` tells whose placeholder a text is, if it is one.
pub(crate) fn judge(
    headers: &HeaderMap,
    query: &str,
    grants: &[Grant],
    owner_of: impl Fn(&str) -> Option<BoxId>,
) -> Result<Swaps, Offence> {
    let judge = Judge { grants, owner_of };
    let query = judge.query(query)?;
    judge.cookies(headers)?;
    let mut swaps = Vec::new();
    let own_headers = grants.iter().filter_map(|grant| grant.credential.as_ref());
    let own_headers = own_headers.flat_map(|credential| &credential.spec.carried);
    let own_headers = own_headers.filter_map(|carriage| match carriage {
        Carriage::Header { name } => Some(name.as_str()),
        Carriage::Bearer | Carriage::Basic | Carriage::Query { .. } => None,
    });
    for name in CREDENTIAL_HEADERS.into_iter().chain(own_headers) {
        if name != "cookie" {
            swaps.extend(judge.header(headers, name)?);
        }
    }
    Ok(Swaps {
        headers: swaps,
        query,
    })
}

struct Judge<'a, OwnerOf> {
    grants: &'a [Grant],
    owner_of: OwnerOf,
}

impl<OwnerOf: Fn(&str) -> Option<BoxId>> Judge<'_, OwnerOf> {
    fn header(&self, headers: &HeaderMap, name: &str) -> Result<Option<Swap>, Offence> {
        let mut values = headers.get_all(name).iter();
        let (Some(value), second) = (values.next(), values.next()) else {
            return Ok(None);
        };
        if second.is_some() {
            return Err(self.offence_of_all(headers, name));
        }
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| Offence::ForeignCredential)?;
        let text = value
            .to_str()
            .map_err(|_| Offence::ForeignCredential)?
            .trim();
        if text.is_empty() {
            return Ok(Some(Swap { name, value: None }));
        }
        let value = if name == header::AUTHORIZATION {
            self.authorization(text)?
        } else {
            let own = Carriage::Header {
                name: name.as_str().to_owned(),
            };
            self.secret_for(text, &own)?.map(Zeroizing::new)
        };
        let Some(value) = value else {
            return Ok(Some(Swap { name, value: None }));
        };
        let mut value = HeaderValue::from_bytes(&value).map_err(|_| Offence::CredentialMissing)?;
        value.set_sensitive(true);
        Ok(Some(Swap {
            name,
            value: Some(value),
        }))
    }

    /// `Bearer <it>`, `token <it>` (GitHub's own spelling) or `Basic base64(user:<it>)`.
    fn authorization(&self, text: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Offence> {
        let (scheme, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        let rest = rest.trim();
        let is = |name: &str| scheme.eq_ignore_ascii_case(name);
        if is("bearer") || is("token") {
            if rest.is_empty() {
                return Ok(None);
            }
            let secret = self.secret_for(rest, &Carriage::Bearer)?;
            let joined = secret.map(|secret| [scheme.as_bytes(), b" ", &secret].concat());
            return Ok(joined.map(Zeroizing::new));
        }
        if is("basic") {
            return self.basic(rest).map(Some);
        }
        Err(self.offence(text))
    }

    fn basic(&self, encoded: &str) -> Result<Zeroizing<Vec<u8>>, Offence> {
        let foreign = || Offence::ForeignCredential;
        let pair = BASE64.decode(encoded).map_err(|_| foreign())?;
        let pair = String::from_utf8(pair).map_err(|_| foreign())?;
        let (user, password) = pair.split_once(':').ok_or_else(foreign)?;
        // `<it>:` and, as GitHub spells it, `<it>:x-oauth-basic`.
        let as_user = password.is_empty() || password == PASSWORD_THAT_IS_NONE;
        let placeholder = if as_user { user } else { password };
        let secret = self.secret_for(placeholder, &Carriage::Basic)?;
        let secret = Zeroizing::new(secret.ok_or_else(foreign)?);
        // A user that is itself a placeholder or token is not what a user name is for.
        if !as_user && (self.owner_of)(user).is_some() {
            return Err(foreign());
        }
        let pair = if as_user {
            [secret.as_slice(), b":", password.as_bytes()].concat()
        } else {
            [user.as_bytes(), b":", &secret].concat()
        };
        let pair = Zeroizing::new(pair);
        let encoded = Zeroizing::new(BASE64.encode(&*pair));
        Ok(Zeroizing::new([b"Basic ", encoded.as_bytes()].concat()))
    }

    /// The secret for a placeholder that stands where its credential may be carried.
    fn secret_for(&self, text: &str, carriage: &Carriage) -> Result<Option<Vec<u8>>, Offence> {
        let grant = self.grants.iter().find(|grant| grant.placeholder == text);
        let Some(grant) = grant else {
            return Err(self.offence(text));
        };
        let credential = grant
            .credential
            .as_ref()
            .ok_or(Offence::CredentialMissing)?;
        let carried = credential
            .spec
            .carried
            .iter()
            .any(|own| same_carriage(own, carriage));
        if !carried {
            return Err(Offence::ForeignCredential);
        }
        grant
            .secret()
            .map(|secret| Some(secret.to_vec()))
            .ok_or(Offence::CredentialMissing)
    }

    /// The query with the secret in place of the placeholder, where one may be carried there.
    fn query(&self, query: &str) -> Result<Option<Zeroizing<String>>, Offence> {
        let own = self.own_parameters();
        let mut swapped = Zeroizing::new(String::new());
        let mut is_swapped = false;
        let mut seen: Vec<String> = Vec::new();
        for pair in query.split_inclusive(['&', ';']) {
            let end = pair.strip_suffix(['&', ';']).map_or(pair.len(), str::len);
            let (pair, separator) = pair.split_at(end);
            let (written, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = percent_decoded(written).to_ascii_lowercase();
            let is_own = own.contains(&name);
            let meant = meant(&name);
            let is_credential =
                CREDENTIAL_PARAMETERS.contains(&meant) || own.iter().any(|own| own == meant);
            if value.is_empty() || !is_credential {
                swapped.push_str(pair);
                swapped.push_str(separator);
                continue;
            }
            let value = percent_decoded(value);
            // Which of two a server takes is not known.
            if !is_own || seen.contains(&name) {
                return Err(self.offence(&value));
            }
            let carriage = Carriage::Query { name: name.clone() };
            let secret = self.secret_for(&value, &carriage)?.map(Zeroizing::new);
            let secret = secret.ok_or(Offence::CredentialMissing)?;
            swapped.push_str(written);
            swapped.push('=');
            percent_encode(&secret, &mut swapped);
            swapped.push_str(separator);
            seen.push(name);
            is_swapped = true;
        }
        Ok(is_swapped.then_some(swapped))
    }

    /// Names of query parameters that credentials of this host are carried in, in lower case.
    fn own_parameters(&self) -> Vec<String> {
        let grants = self.grants.iter();
        let credentials = grants.filter_map(|grant| grant.credential.as_ref());
        let carried = credentials.flat_map(|credential| &credential.spec.carried);
        carried
            .filter_map(|carriage| match carriage {
                Carriage::Query { name } => Some(name.to_ascii_lowercase()),
                Carriage::Bearer | Carriage::Basic | Carriage::Header { .. } => None,
            })
            .collect()
    }

    fn cookies(&self, headers: &HeaderMap) -> Result<(), Offence> {
        for value in headers.get_all(header::COOKIE) {
            let text = value.to_str().map_err(|_| Offence::ForeignCredential)?;
            let pairs = text
                .split(';')
                .map(str::trim)
                .filter(|pair| !pair.is_empty());
            let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or(("", pair)));
            if let Some((_, value)) = pairs.find(|(name, _)| !is_harmless_cookie(name.trim())) {
                return Err(self.offence(value.trim()));
            }
        }
        Ok(())
    }

    fn offence(&self, text: &str) -> Offence {
        let token = text.rsplit([' ', '\t']).next().unwrap_or(text);
        match (self.owner_of)(text).or_else(|| (self.owner_of)(token)) {
            Some(belongs_to) => Offence::ForeignPlaceholder { belongs_to },
            None => Offence::ForeignCredential,
        }
    }

    /// Several values at once are never right; the alarm is raised if one deserves it.
    fn offence_of_all(&self, headers: &HeaderMap, name: &str) -> Offence {
        let texts = headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let own = |text: &str| {
            self.grants
                .iter()
                .any(|grant| text.ends_with(&*grant.placeholder))
        };
        let foreign = texts
            .filter(|text| !own(text))
            .map(|text| self.offence(text));
        let mut foreign = foreign.filter(|offence| *offence != Offence::ForeignCredential);
        foreign.next().unwrap_or(Offence::ForeignCredential)
    }
}

fn same_carriage(own: &Carriage, asked: &Carriage) -> bool {
    match (own, asked) {
        (Carriage::Header { name: own }, Carriage::Header { name: asked })
        | (Carriage::Query { name: own }, Carriage::Query { name: asked }) => {
            own.eq_ignore_ascii_case(asked)
        }
        _ => own == asked,
    }
}

/// The name servers of several kinds read: without what makes a list of it (`token[]`, `token[0]`),
/// and without the spaces around it.
fn meant(name: &str) -> &str {
    name.split('[').next().unwrap_or_default().trim()
}

/// Decodes `%xx` and `+`; whatever is no UTF-8 afterwards is replaced, it matches nothing.
fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, left) = match (first, tail) {
            (b'%', [high, low, left @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, left),
                _ => (b'%', tail),
            },
            (b'+', _) => (b' ', tail),
            (byte, _) => (*byte, tail),
        };
        decoded.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Encodes whatever is not unreserved (RFC 3986 §2.3).
fn percent_encode(bytes: &[u8], into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            into.push(char::from(*byte));
        } else {
            into.push('%');
            into.push(char::from(DIGITS[usize::from(byte >> 4)]));
            into.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests;
