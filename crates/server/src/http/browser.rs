//! Protection against cross-site requests and DNS rebinding.
//!
//! A page of any site can make a browser send requests to servers that the page itself cannot reach. In: the head of a
//! request. Out: [`Caller`], or the reason for status 403.
//!
//! Always: the name in `Host` cannot be registered in public DNS (DNS rebinding), or is in the setting
//! `http.allowed_hosts`; a request with `Origin` or `Sec-Fetch-Site` comes from a page of this server; a POST of such a
//! page is JSON or has a header that forms cannot send; a GET of a browser without the origin of the page changes nothing.
//! For requests without these headers (drivers, curl), `Host` is checked only if the server needs no credentials: browsers
//! store credentials per name, so that a foreign name has none.

use crate::logging::cut;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN, REFERER, USER_AGENT};
use hyper::{HeaderMap, Method};
use std::net::IpAddr;

/// Pattern for all names.
const ANY: &str = "*";

/// Permitted names in `Host`, in addition to the names of [`is_local`].
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// `names` are lower case; `*.example.com` allows every name below `example.com`, `*` every name.
    #[must_use]
    pub fn new(names: Vec<String>) -> AllowedHosts {
        AllowedHosts(names)
    }

    fn allows(&self, name: &str) -> bool {
        is_local(name) || self.0.iter().any(|allowed| matches(allowed, name))
    }
}

fn matches(allowed: &str, name: &str) -> bool {
    match allowed.strip_prefix(ANY) {
        Some("") => true,
        Some(domain) => domain.starts_with('.') && name.len() > domain.len() && name.ends_with(domain),
        None => allowed == name,
    }
}

/// Returns true for IP addresses and for names that cannot be registered in public DNS.
fn is_local(name: &str) -> bool {
    const RESERVED: [&str; 4] = [".localhost", ".local", ".internal", ".home.arpa"];
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    is_address || !name.contains('.') || RESERVED.iter().any(|domain| name.ends_with(domain))
}

/// The sender of a request, according to the request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A program.
    Program,
    /// A page of this server.
    Page,
    /// A browser that does not name a page, for example after its user typed the address.
    Unknown,
}

impl Caller {
    /// Returns true if the request may not change data.
    #[must_use]
    pub fn may_only_read(self) -> bool {
        self == Caller::Unknown
    }
}

/// The parts of a request that the check reads.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    /// The authority of the request line; takes precedence over the header `Host`.
    pub authority: Option<&'a str>,
    pub is_encrypted: bool,
    /// The server requires credentials.
    pub has_credentials: bool,
}

/// Determines the sender of a request.
///
/// # Errors
/// The reason why the request is refused.
pub fn check(head: Head<'_>, allowed: &AllowedHosts) -> Result<Caller, String> {
    let text = |name: HeaderName| head.headers.get(name).map(|value| value.to_str().unwrap_or("\u{fffd}"));
    let host = head.authority.or_else(|| text(HOST));
    let (origin, site) = (text(ORIGIN), head.headers.get("sec-fetch-site").map(|v| v.to_str().unwrap_or_default()));
    let is_from_page = origin.is_some() || site.is_some();
    let is_browser = is_from_page || text(USER_AGENT).is_some_and(is_of_browser);
    if is_browser || !head.has_credentials {
        check_host(host, is_browser, allowed)?;
    }
    if !is_browser {
        return Ok(Caller::Program);
    }
    if let Some(origin) = origin {
        check_origin(origin, host.unwrap_or_default(), head.is_encrypted)?;
    }
    let is_read = matches!(*head.method, Method::GET | Method::HEAD);
    match site {
        // A CORS request of a page; its origin is checked above.
        None if origin.is_some() => {}
        Some("same-origin") => {}
        Some("none") if is_read => return Ok(Caller::Unknown),
        // Browsers send Sec-Fetch-Site only over TLS and to the same machine.
        None if is_read => {
            check_referrer(text(REFERER), host.unwrap_or_default())?;
            return Ok(Caller::Unknown);
        }
        // Browsers send Origin with every POST of a page.
        None => return Ok(Caller::Program),
        Some(other) => {
            return Err(format!(
                "requests from pages of another site or port are refused (Sec-Fetch-Site: {})",
                cut(other)
            ));
        }
    }
    if !is_read && !is_beyond_forms(head.headers) {
        return Err(
            "a request from a page must have Content-Type: application/json or the header X-Requested-With, which \
                    forms of other pages cannot send"
                .to_owned(),
        );
    }
    Ok(Caller::Page)
}

/// Returns true for the `User-Agent` of a browser, which pages cannot change without CORS. PowerShell also sends Mozilla.
fn is_of_browser(agent: &str) -> bool {
    agent.starts_with("Mozilla/") && !agent.contains("PowerShell/")
}

fn check_host(host: Option<&str>, is_browser: bool, allowed: &AllowedHosts) -> Result<(), String> {
    let name = match host.and_then(split) {
        Some((name, _)) => name.trim_end_matches('.').to_ascii_lowercase(),
        // HTTP/1.0 without Host; browsers always send Host.
        None if host.is_none() && !is_browser => return Ok(()),
        None => return Err("header Host is missing or not a valid name".to_owned()),
    };
    if allowed.allows(&name) {
        return Ok(());
    }
    Err(format!(
        "host name {:?} is not allowed because of DNS rebinding; add the name to the setting http.allowed_hosts, or use \
         the address of the server",
        cut(&name)
    ))
}

fn check_origin(origin: &str, host: &str, is_encrypted: bool) -> Result<(), String> {
    let refused =
        || format!("requests from pages of another origin are refused (Origin: {}, Host: {})", cut(origin), cut(host));
    let (scheme, rest) = origin.split_once("://").ok_or_else(refused)?;
    // A proxy in front of the server may terminate TLS.
    let is_known = scheme == "https" || scheme == "http" && !is_encrypted;
    let (Some(page), Some(own)) = (split(rest), split(host)) else { return Err(refused()) };
    let usual = if scheme == "https" { 443 } else { 80 };
    let is_same = page.0.eq_ignore_ascii_case(own.0) && page.1.unwrap_or(usual) == own.1.unwrap_or(usual);
    if is_known && is_same { Ok(()) } else { Err(refused()) }
}

/// Checks `Referer`, which a page can omit but not forge.
fn check_referrer(referrer: Option<&str>, host: &str) -> Result<(), String> {
    let Some(referrer) = referrer.filter(|text| !text.is_empty()) else { return Ok(()) };
    let authority = referrer.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority {
        Some(page) if page.eq_ignore_ascii_case(host) => Ok(()),
        _ => Err(format!("requests from pages of another origin are refused (Referer: {})", cut(referrer))),
    }
}

/// Returns true if an HTML form cannot send the request.
fn is_beyond_forms(headers: &HeaderMap) -> bool {
    const OF_FORMS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("text/plain");
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    headers.contains_key("x-requested-with") || !OF_FORMS.contains(&essence.as_str())
}

/// Splits an authority into name and port; `None` if the text is not an authority.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = match authority.strip_prefix('[') {
        Some(address) => address.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (name, rest) = authority.split_at(end);
    let port = match rest.strip_prefix(':') {
        Some(port) => Some(port.parse().ok()?),
        None if rest.is_empty() => None,
        None => return None,
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn checked(method: Method, pairs: &[(&str, &str)]) -> Result<Caller, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let head =
            Head { method: &method, headers: &headers, authority: None, is_encrypted: false, has_credentials: false };
        check(head, &AllowedHosts::new(vec!["db.example.com".to_owned(), "*.corp.example".to_owned()]))
    }

    #[test]
    fn host_names_without_credentials() {
        for host in [
            "localhost:9000",
            "127.0.0.1:9000",
            "[::1]:9000",
            "192.168.0.7",
            "db",
            "db.internal",
            "a.localhost",
            "DB.example.com:80",
            "db.example.com.",
            "x.corp.example",
        ] {
            assert_eq!(checked(Method::GET, &[("host", host)]), Ok(Caller::Program), "{host}");
        }
        for host in [
            "evil.example:9000",
            "corp.example",
            "xcorp.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "a b",
            "db.example.com:x",
            "[::1",
            "user@localhost",
        ] {
            assert!(checked(Method::GET, &[("host", host)]).is_err(), "{host}");
        }
        // HTTP/1.0 without a header.
        assert_eq!(checked(Method::GET, &[]), Ok(Caller::Program));
    }

    #[test]
    fn host_names_with_credentials() {
        let headers: HeaderMap = [(HOST, HeaderValue::from_static("other.example:9000"))].into_iter().collect();
        let head = Head {
            method: &Method::GET,
            headers: &headers,
            authority: None,
            is_encrypted: true,
            has_credentials: true,
        };
        assert_eq!(check(head, &AllowedHosts::default()), Ok(Caller::Program));
        let mut headers = headers.clone();
        headers.insert(ORIGIN, HeaderValue::from_static("https://other.example:9000"));
        assert!(check(Head { headers: &headers, ..head }, &AllowedHosts::default()).is_err());
        assert_eq!(
            check(Head { headers: &headers, ..head }, &AllowedHosts::new(vec!["*".to_owned()])),
            Ok(Caller::Page)
        );
    }

    #[test]
    fn pages_of_other_origins() {
        let host = ("host", "localhost:9000");
        for origin in [
            "http://evil.example",
            "http://localhost:8000",
            "http://localhost",
            "null",
            "file://",
            "http://127.0.0.1:9000",
            "moz-extension://localhost:9000",
        ] {
            assert!(checked(Method::GET, &[host, ("origin", origin)]).is_err(), "{origin}");
        }
        assert_eq!(checked(Method::GET, &[host, ("origin", "http://localhost:9000")]), Ok(Caller::Page));
        // A proxy terminates TLS.
        let proxied = [("host", "db.example.com"), ("origin", "https://db.example.com")];
        assert_eq!(checked(Method::GET, &proxied), Ok(Caller::Page));
        for site in ["cross-site", "same-site", "other"] {
            assert!(checked(Method::GET, &[host, ("sec-fetch-site", site)]).is_err(), "{site}");
        }
        assert_eq!(checked(Method::GET, &[host, ("sec-fetch-site", "same-origin")]), Ok(Caller::Page));
        assert_eq!(checked(Method::GET, &[host, ("sec-fetch-site", "none")]), Ok(Caller::Unknown));
        assert!(checked(Method::POST, &[host, ("sec-fetch-site", "none")]).is_err());
    }

    #[test]
    fn browser_requests_without_origin() {
        let (host, agent) = (("host", "192.168.0.7:9000"), ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"));
        assert_eq!(checked(Method::GET, &[host, agent]), Ok(Caller::Unknown));
        assert_eq!(checked(Method::GET, &[host, agent, ("referer", "http://192.168.0.7:9000/")]), Ok(Caller::Unknown));
        assert!(checked(Method::GET, &[host, agent, ("referer", "http://evil.example/")]).is_err());
        assert_eq!(checked(Method::POST, &[host, agent]), Ok(Caller::Program));
        let shell = ("user-agent", "Mozilla/5.0 (Windows NT 10.0; en-US) PowerShell/7.4.0");
        assert_eq!(checked(Method::GET, &[host, shell]), Ok(Caller::Program));
    }

    #[test]
    fn posts_of_pages() {
        let page = [("host", "localhost:9000"), ("origin", "http://localhost:9000")];
        let with = |more: (&'static str, &'static str)| [page[0], page[1], more];
        assert!(checked(Method::POST, &page).is_err());
        for of_forms in
            ["text/plain;charset=utf-8", "application/x-www-form-urlencoded", "Multipart/Form-Data; boundary=x"]
        {
            assert!(checked(Method::POST, &with(("content-type", of_forms))).is_err(), "{of_forms}");
        }
        assert_eq!(checked(Method::POST, &with(("content-type", "application/json"))), Ok(Caller::Page));
        assert_eq!(checked(Method::POST, &with(("x-requested-with", "console"))), Ok(Caller::Page));
    }
}
