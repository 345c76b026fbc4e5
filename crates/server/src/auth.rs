//! Who may use HTTP: a user with a password, or the bearer of a token.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Digest, SHA256, digest};

/// The credentials that open the door, as digests: comparing those takes the same time for any guess.
pub struct HttpAuth {
    credentials: Vec<Digest>,
}

impl HttpAuth {
    #[must_use]
    pub fn new(user: Option<&(String, String)>, tokens: &[String]) -> HttpAuth {
        let user = user.map(|(name, password)| format!("basic {name}:{password}"));
        let tokens = tokens.iter().map(|t| format!("bearer {t}"));
        HttpAuth { credentials: user.into_iter().chain(tokens).map(|c| digest(&SHA256, c.as_bytes())).collect() }
    }

    /// Returns true if requests need credentials.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        !self.credentials.is_empty()
    }

    /// Whether a request with this `Authorization` header may pass.
    #[must_use]
    pub fn allows(&self, authorization: Option<&[u8]>) -> bool {
        if self.credentials.is_empty() {
            return true;
        }
        authorization.and_then(credentials).is_some_and(|offered| offered.iter().any(|offered| self.has(offered)))
    }

    /// Returns true if the credentials permit requests, or if the server has no credentials.
    #[must_use]
    pub fn allows_user(&self, user: &str, password: &str) -> bool {
        self.credentials.is_empty() || self.has(format!("basic {user}:{password}").as_bytes())
    }

    fn has(&self, offered: &[u8]) -> bool {
        let offered = digest(&SHA256, offered);
        self.credentials.iter().fold(false, |found, c| found | (c.as_ref() == offered.as_ref()))
    }
}

/// Returns the user name of an `Authorization` header, valid or not; `None` for a token.
#[must_use]
pub fn user_of(header: &[u8]) -> Option<String> {
    let offered = credentials(header)?;
    let basic = offered.iter().find_map(|offered| offered.strip_prefix(b"basic "))?;
    let user = basic.split(|byte| *byte == b':').next()?;
    (user.len() < basic.len()).then(|| String::from_utf8_lossy(user).into_owned())
}

/// Returns the possible meanings of an `Authorization` header, in the form of the stored credentials.
fn credentials(header: &[u8]) -> Option<Vec<Vec<u8>>> {
    let header = std::str::from_utf8(header).ok()?;
    let (scheme, value) = header.trim().split_once(' ')?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(vec![format!("bearer {value}").into_bytes()]);
    }
    // InfluxDB 2: a token, or a user and a password of InfluxDB 1.
    if scheme.eq_ignore_ascii_case("token") {
        return Some(vec![format!("bearer {value}").into_bytes(), format!("basic {value}").into_bytes()]);
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut out = b"basic ".to_vec();
    out.extend(STANDARD.decode(value).ok()?);
    Some(vec![out])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_configured_opens() {
        let open = HttpAuth::new(None, &[]);
        assert!(open.allows(None));
        let auth = HttpAuth::new(Some(&("admin".to_owned(), "s:cret".to_owned())), &["tok".to_owned()]);
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert!(auth.allows(Some(basic("admin:s:cret").as_bytes())));
        assert!(auth.allows(Some(b"bearer tok")) && auth.allows(Some(b"Token tok")));
        assert!(auth.allows(Some(b"Token admin:s:cret")) && !auth.allows(Some(b"Token admin:other")));
        assert!(auth.allows_user("admin", "s:cret") && !auth.allows_user("admin", "tok"));
        for wrong in ["", "Basic", "Basic !!!", "Bearer", "Bearer tok2", "Bearer admin:s:cret", "Digest tok"] {
            assert!(!auth.allows(Some(wrong.as_bytes())), "{wrong}");
        }
        assert!(!auth.allows(Some(basic("admin:").as_bytes())));
        assert!(!auth.allows(Some(basic("tok").as_bytes())));
        assert!(!auth.allows(Some(&[0xff, b' ', 0xff])));
        assert!(!auth.allows(None));
    }
}
