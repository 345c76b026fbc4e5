//! Access control of files and hosts for `read_csv`, `read_parquet`, COPY and BACKUP.
//!
//! An embedded database and the shell have the access of their process. A server has access to the folders and hosts of
//! its settings only: otherwise every client would read and write with the rights of the server's user. A path is
//! resolved, with `..` and symbolic links, before the comparison, and the resolved path is opened. Addresses are compared
//! at each connection, so that a changed DNS entry has no effect.

use crate::{Error, Result};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientOptions, Error as StoreError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidalite_types::SqlState;

/// The defaults of the client of `object_store`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const REDIRECTS_MAX: usize = 10;
const ROOTS: &str = "the setting files.roots lists the folders that statements may use";
const HOSTS: &str = "the setting files.hosts lists the hosts and buckets that statements may reach";

/// The files and hosts that statements may use. Clones share the settings.
#[derive(Clone, Debug, Default)]
pub struct FileAccess(Option<Arc<Confined>>);

#[derive(Debug)]
struct Confined {
    roots: Vec<PathBuf>,
    hosts: Vec<Host>,
    private_addresses: bool,
}

/// A host, or a bucket of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    /// A host of `http://` and `https://`, all its subdomains (`*.name`), and a port other than 80 and 443.
    Http {
        name: String,
        below: bool,
        port: Option<u16>,
    },
    /// A scheme, a bucket and a prefix of its paths.
    Store {
        scheme: String,
        bucket: String,
        prefix: String,
    },
}

impl FileAccess {
    /// Permits all files and hosts.
    #[must_use]
    pub fn unrestricted() -> FileAccess {
        FileAccess(None)
    }

    /// Permits folders, hosts (`example.com`, `*.example.com`, `example.com:8443`, `*` for every host and bucket) and
    /// buckets (`s3://bucket/prefix`). `private_addresses` permits addresses of private networks and of this machine.
    ///
    /// # Errors
    /// The first invalid entry of `hosts`.
    pub fn confined(roots: Vec<PathBuf>, hosts: &[String], private_addresses: bool) -> Result<FileAccess, String> {
        let hosts = hosts.iter().map(|text| Host::parse(text).ok_or_else(|| text.clone()));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        Ok(FileAccess(Some(Arc::new(Confined { roots, hosts, private_addresses }))))
    }

    /// Returns true if all files and hosts are permitted.
    #[must_use]
    pub fn is_unrestricted(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the resolved path to open; the file need not exist.
    ///
    /// # Errors
    /// The path is outside of the folders. The error does not reveal whether the file exists.
    pub fn path(&self, path: &str) -> Result<PathBuf> {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let Some(confined) = &self.0 else { return Ok(PathBuf::from(path)) };
        let is_within = |path: &PathBuf, root: &PathBuf| root.canonicalize().is_ok_and(|root| path.starts_with(root));
        let is_permitted = |path: &PathBuf| confined.roots.iter().any(|root| is_within(path, root));
        resolved(Path::new(path)).filter(is_permitted).ok_or_else(|| outside(path))
    }

    /// Checks a URL.
    ///
    /// # Errors
    /// Statements may not use the host or bucket of the URL.
    pub fn url(&self, url: &str) -> Result<()> {
        let Some(confined) = &self.0 else { return Ok(()) };
        let parsed = Url::parse(url).ok().filter(|parsed| confined.allows(parsed));
        if parsed.is_some() { Ok(()) } else { Err(unreachable(url)) }
    }

    /// Returns the client of `http://` and `https://`; `None` for the default client.
    pub(crate) fn connector(&self) -> Option<Connector> {
        self.0.clone().map(Connector)
    }
}

/// Resolves symbolic links and `..` in the existing part of a path and appends the other names.
///
/// `None` if the path has `..` after a missing name, or a symbolic link to a missing file.
fn resolved(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut behind: Vec<OsString> = Vec::new();
    let mut rest = absolute.clone();
    loop {
        if let Ok(found) = rest.canonicalize() {
            return Some(behind.into_iter().rev().fold(found, |path, name| path.join(name)));
        }
        let last = rest.components().next_back();
        match last {
            Some(Component::Normal(name)) => behind.push(name.to_owned()),
            // The target of `..` after a missing name is unknown.
            _ => return None,
        }
        // The creation of a file follows a link to a missing file.
        if rest.symlink_metadata().is_ok() || !rest.pop() {
            return None;
        }
    }
}

fn outside(path: &str) -> Error {
    let mut error =
        Error::invalid(format!("'{path}' is outside of the folders that statements may use on this server"))
            .with_code(SqlState::INSUFFICIENT_PRIVILEGE)
            .with_hint(ROOTS);
    error.subject = Some(format!("'{path}"));
    error
}

fn unreachable(url: &str) -> Error {
    let mut error = Error::invalid(format!("'{url}' is not among the hosts that statements may reach on this server"))
        .with_code(SqlState::INSUFFICIENT_PRIVILEGE)
        .with_hint(HOSTS);
    error.subject = Some(format!("'{url}"));
    error
}

impl Confined {
    fn allows(&self, url: &Url) -> bool {
        self.hosts.iter().any(|host| host.allows(url)) && self.allows_literal(url)
    }

    /// Checks a host that is an address: the resolver does not see it.
    fn allows_literal(&self, url: &Url) -> bool {
        let text = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        text.parse().map_or(true, |address| self.allows_address(address))
    }

    fn allows_address(&self, address: IpAddr) -> bool {
        self.private_addresses || is_public(address)
    }
}

impl Host {
    fn parse(text: &str) -> Option<Host> {
        if text == "*" {
            return Some(Host::Any);
        }
        if let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| !scheme.starts_with("http")) {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let prefix = prefix.trim_end_matches('/').to_owned();
            let host = Host::Store { scheme: scheme.to_ascii_lowercase(), bucket: bucket.to_owned(), prefix };
            return (!scheme.is_empty() && !bucket.is_empty()).then_some(host);
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let below = rest.starts_with("*.");
        // The parser normalizes names for the comparison.
        let parsed = Url::parse(&format!("http://{}", rest.trim_start_matches("*."))).ok()?;
        let is_host = parsed.path() == "/" && parsed.query().is_none() && parsed.username().is_empty();
        let port = parsed.port().or((scheme == "http").then_some(80)).or((scheme == "https").then_some(443));
        let name = parsed.host_str()?.to_ascii_lowercase();
        is_host.then_some(Host::Http { name, below, port })
    }

    fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        match self {
            Host::Any => true,
            Host::Http { name, below, port } => {
                let is_usual = |port| port == 80 || port == 443;
                let of_url = url.port_or_known_default();
                let has_port = of_url.is_some_and(|of_url| port.map_or(is_usual(of_url), |port| port == of_url));
                let is_below = *below && host.strip_suffix(&name[..]).is_some_and(|rest| rest.ends_with('.'));
                url.scheme().starts_with("http") && has_port && (host == *name && !below || is_below)
            }
            Host::Store { scheme, bucket, prefix } => {
                let path = url.path().trim_start_matches('/');
                let is_below =
                    path.strip_prefix(&prefix[..]).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                url.scheme() == scheme && host == bucket.to_ascii_lowercase() && (prefix.is_empty() || is_below)
            }
        }
    }
}

/// Returns true if an address is a global unicast address: not local, private or reserved.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || matches!((a, b, c), (0, _, _) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _) | (240.., _, _));
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    let within = |high: u16, low: u16| {
        let [a, b, c, d] = [high >> 8, high & 255, low >> 8, low & 255].map(|byte| byte as u8);
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match words {
        // IPv4 in IPv6: mapped, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            within(high, low)
        }
        // Global unicast, except tunnels, documentation and reserved ranges.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

/// Creates clients that check every address and every redirect.
#[derive(Clone, Debug)]
pub(crate) struct Connector(Arc<Confined>);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let confined = self.0.clone();
        let redirects = Policy::custom(move |attempt| match confined.allows(attempt.url()) {
            _ if attempt.previous().len() > REDIRECTS_MAX => attempt.error("too many redirects"),
            true => attempt.follow(),
            false => attempt.error("a redirect leads to a host that statements may not reach (setting files.hosts)"),
        });
        let mut client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(redirects)
            .dns_resolver(Arc::new(Resolver(self.0.clone())));
        if !self.0.private_addresses {
            // A proxy would resolve names without this check.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|e| StoreError::Generic { store: "HTTP", source: Box::new(e) })?;
        Ok(HttpClient::new(client))
    }
}

/// Resolves names and removes addresses that statements may not use.
#[derive(Debug)]
struct Resolver(Arc<Confined>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let confined = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> = found.iter().copied().filter(|a| confined.allows_address(a.ip())).collect();
            if allowed.is_empty() && !found.is_empty() {
                let message = format!(
                    "{} has an address of a private network, which statements may not reach (setting \
                     files.private_addresses)",
                    name.as_str()
                );
                return Err(message.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn access(roots: &[&Path], hosts: &[&str]) -> FileAccess {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        FileAccess::confined(roots.iter().map(|root| root.to_path_buf()).collect(), &hosts, false).unwrap()
    }

    #[test]
    fn paths_are_resolved_before_they_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("root-2"));
        for folder in [&root, &root.join("sub"), &other] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(root.join("a.csv"), "x").unwrap();
        fs::write(other.join("secret"), "x").unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        link(&other, "out");
        link(&other.join("secret"), "file");
        link(&other.join("not-there"), "nowhere");
        link(&root.join("sub"), "in");
        let access = access(&[&root], &[]);
        let path = |text: &str| access.path(&root.join(text).to_string_lossy());
        assert_eq!(path("a.csv").unwrap(), root.canonicalize().unwrap().join("a.csv"));
        assert_eq!(path("sub/../a.csv").unwrap(), root.canonicalize().unwrap().join("a.csv"));
        assert_eq!(path("in/new/b.csv").unwrap(), root.canonicalize().unwrap().join("sub/new/b.csv"));
        assert!(path("").is_ok() && path("not there").is_ok());
        for bad in ["..", "../root-2/secret", "out/secret", "file", "out/new", "nowhere", "new/../../root-2", "out/.."]
        {
            let error = path(bad).unwrap_err();
            assert_eq!(error.code, Some(SqlState::INSUFFICIENT_PRIVILEGE), "{bad}: {error}");
        }
        for bad in ["/etc/passwd", "file:///etc/passwd", "", "/", "relative", "/proc/self/root/etc/passwd"] {
            assert!(access.path(bad).is_err(), "{bad}");
        }
        assert!(FileAccess::unrestricted().path("/etc/passwd").is_ok());
        assert!(FileAccess::confined(Vec::new(), &[], false).unwrap().path("/").is_err());
    }

    #[test]
    fn hosts_and_buckets_are_compared_whole() {
        let allowed =
            ["example.com", "*.data.org", "files.net:8443", "s3://bucket/below", "gs://all", "https://tls.io"];
        let access = access(&[], &allowed);
        for good in [
            "https://example.com/a",
            "http://EXAMPLE.com/a",
            "https://x.y.data.org/",
            "https://files.net:8443/a",
            "s3://bucket/below/a.parquet",
            "s3://bucket/below",
            "gs://all/x",
            "https://tls.io/a",
        ] {
            assert!(access.url(good).is_ok(), "{good}");
        }
        for bad in [
            "https://example.com.evil.org/",
            "https://example.com@evil.org/",
            "https://evil.org/example.com",
            "https://notexample.com/",
            "https://data.org/",
            "https://evildata.org/",
            "https://example.com:22/",
            "https://files.net/",
            "s3://bucket/belowness/x",
            "s3://bucket/other",
            "s3://other/below",
            "gs://bucket/below",
            "http://tls.io/a",
            "http://127.0.0.1/",
            "http://[::1]/",
            "not a url",
        ] {
            assert!(access.url(bad).is_err(), "{bad}");
        }
        for bad in ["", "a b", "http://x/path", "://x", "s3://"] {
            assert!(FileAccess::confined(Vec::new(), &[bad.to_owned()], false).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_of_private_networks_are_not_reached() {
        let any = access(&[], &["*"]);
        for bad in [
            "http://127.0.0.1/",
            "http://169.254.169.254/latest",
            "http://10.1.2.3/",
            "http://192.168.0.1:9000/",
            "http://100.64.0.1/",
            "http://0.0.0.0/",
            "http://[::1]/",
            "http://[fe80::1]/",
            "http://[fd00::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://2130706433/",
            "http://0x7f.1/",
        ] {
            assert!(any.url(bad).is_err(), "{bad}");
        }
        for good in ["http://93.184.216.34/", "http://[2606:2800:220:1::1]/", "http://[::ffff:93.184.216.34]/"] {
            assert!(any.url(good).is_ok(), "{good}");
        }
        let private = FileAccess::confined(Vec::new(), &["*".to_owned()], true).unwrap();
        assert!(private.url("http://127.0.0.1/").is_ok());
    }

    #[test]
    fn a_name_of_a_private_address_is_refused_when_it_is_looked_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let resolve = |private_addresses| {
            let confined = Confined { roots: Vec::new(), hosts: vec![Host::Any], private_addresses };
            let name: Name = "localhost".parse().unwrap();
            runtime.block_on(Resolver(Arc::new(confined)).resolve(name)).map(|found| found.count())
        };
        assert!(resolve(true).unwrap() > 0);
        assert!(resolve(false).map(drop).unwrap_err().to_string().contains("private network"));
    }
}
