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

    /// Whether a request with this `Authorization` header may pass.
    #[must_use]
    pub fn allows(&self, authorization: Option<&[u8]>) -> bool {
        if self.credentials.is_empty() {
            return true;
        }
        let Some(offered) = authorization.and_then(credential) else { return false };
        let offered = digest(&SHA256, &offered);
        self.credentials.iter().fold(false, |found, c| found | (c.as_ref() == offered.as_ref()))
    }
}

/// The header in the form the credentials are kept in.
fn credential(header: &[u8]) -> Option<Vec<u8>> {
    let header = std::str::from_utf8(header).ok()?;
    let (scheme, value) = header.trim().split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(format!("bearer {}", value.trim()).into_bytes());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut out = b"basic ".to_vec();
    out.extend(STANDARD.decode(value.trim()).ok()?);
    Some(out)
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
        assert!(auth.allows(Some(b"bearer tok")));
        for wrong in ["", "Basic", "Basic !!!", "Bearer", "Bearer tok2", "Bearer admin:s:cret", "Digest tok"] {
            assert!(!auth.allows(Some(wrong.as_bytes())), "{wrong}");
        }
        assert!(!auth.allows(Some(basic("admin:").as_bytes())));
        assert!(!auth.allows(Some(basic("tok").as_bytes())));
        assert!(!auth.allows(Some(&[0xff, b' ', 0xff])));
        assert!(!auth.allows(None));
    }
}
