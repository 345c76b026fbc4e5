//! The beginning of a session: a cancel request done, or a user let in.

use super::message::{Body, Input, Malformed, Message};
use super::reply::{Output, Report};
use super::scram::{Credentials, Exchange};
use super::state::PgState;
use crate::logging::{LineThrottle, cut};
use bytes::Bytes;
use std::net::IpAddr;

static NOT_ENCRYPTED: LineThrottle = LineThrottle::new();

const CANCEL: u32 = 80_877_102;
const VERSION_3: u32 = 3 << 16;

/// What the client said of itself.
#[derive(Clone, Debug, Default)]
pub struct Startup {
    pub user: String,
    /// Settings of the session, in order.
    pub settings: Vec<(String, String)>,
}

/// The client before its startup message.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub is_encrypted: bool,
    pub address: IpAddr,
    /// The connection limit that is reached.
    pub full: Option<&'static str>,
}

/// `None` when there is nothing to go on with: the client left, cancelled something, or was refused and told why.
pub async fn start(
    input: &mut Input,
    out: &mut Output,
    shared: &PgState,
    peer: Peer,
) -> Result<Option<Startup>, String> {
    let started = crate::accept::in_time(shared.handshake_timeout, greet(input, out, shared, peer)).await;
    match started.ok_or_else(|| "the login took longer than handshake_timeout".to_owned())? {
        Ok(startup) => Ok(startup),
        Err(Malformed::Io(error)) => Err(error.to_string()),
        Err(Malformed::Fatal(text) | Malformed::Message(text) | Malformed::Memory(text)) => {
            crate::counters::add(&shared.counters.pg.errors, 1);
            out.report(&Report::fatal("08P01", text.clone()));
            let _ = out.flush().await;
            Err(text)
        }
    }
}

async fn greet(
    input: &mut Input,
    out: &mut Output,
    shared: &PgState,
    peer: Peer,
) -> Result<Option<Startup>, Malformed> {
    let Some(body) = input.startup().await? else { return Ok(None) };
    let mut body = Body(body);
    match body.u32()? {
        // Older clients cancel in plain text wherever they are connected; the key is that of one connection.
        CANCEL => {
            let (id, key) = (body.u32()? as i32, body.u32()? as i32);
            shared.backends.cancel(&shared.database, id, key);
            Ok(None)
        }
        _ if shared.tls.is_some() && !peer.is_encrypted => {
            if let Some(left_out) = NOT_ENCRYPTED.pass() {
                let address = peer.address;
                tracing::warn!(%address, left_out, "PostgreSQL: connection closed: it is not encrypted, and pg.tls is on");
            }
            let message = "connection is not encrypted: this server takes encrypted ones only (sslmode=require)";
            refuse(out, "28000", message).await
        }
        version if version >> 16 == 3 => {
            let (startup, unknown) = parameters(body)?;
            if version != VERSION_3 || !unknown.is_empty() {
                negotiate(out, &unknown);
            }
            admit(input, out, shared, startup, peer).await
        }
        version => {
            let (major, minor) = (version >> 16, version & 0xffff);
            refuse(out, "0A000", format!("unsupported frontend protocol {major}.{minor}: server supports 3.0")).await
        }
    }
}

async fn refuse(
    out: &mut Output,
    sqlstate: &'static str,
    message: impl Into<String>,
) -> Result<Option<Startup>, Malformed> {
    out.report(&Report::fatal(sqlstate, message));
    out.flush().await?;
    Ok(None)
}

/// The client asked for a newer minor version or for options of the protocol: it is told what it gets.
fn negotiate(out: &mut Output, unknown: &[String]) {
    out.message(b'v', |body| {
        body.extend_from_slice(&VERSION_3.to_be_bytes());
        body.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
        for name in unknown {
            body.extend_from_slice(name.as_bytes());
            body.push(0);
        }
    });
}

/// Pairs of names and values; names of the protocol's own options apart.
fn parameters(mut body: Body) -> Result<(Startup, Vec<String>), Malformed> {
    let (mut startup, mut unknown) = (Startup::default(), Vec::new());
    loop {
        let name = body.name()?;
        if name.is_empty() {
            break;
        }
        let value = body.name()?;
        match name.as_str() {
            "user" => startup.user = value,
            // There is one database, whatever it is called.
            "database" => {}
            "options" => startup.settings.extend(options(&value)),
            "replication" if !matches!(value.as_str(), "false" | "off" | "no" | "0") => {
                return Err(Malformed::Message("replication is not supported".to_owned()));
            }
            "replication" => {}
            _ if name.starts_with("_pq_.") => unknown.push(name),
            _ => startup.settings.push((name, value)),
        }
    }
    Ok((startup, unknown))
}

/// `-c name=value --name=value`; a backslash keeps a space.
fn options(text: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => words.last_mut().into_iter().for_each(|word| word.extend(chars.next())),
            c if c.is_whitespace() => words.push(String::new()),
            c => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    let settings = words.iter().map(|word| word.strip_prefix("--").or(word.strip_prefix("-c")).unwrap_or(word));
    settings
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.replace('-', "_"), value.to_owned()))
        .collect()
}

async fn admit(
    input: &mut Input,
    out: &mut Output,
    shared: &PgState,
    startup: Startup,
    peer: Peer,
) -> Result<Option<Startup>, Malformed> {
    // Beyond the limits, only users of this machine who log in are admitted.
    let is_administrator = shared.credentials.is_some() && peer.address.to_canonical().is_loopback();
    if let Some(setting) = peer.full.filter(|_| !is_administrator) {
        crate::counters::add(&shared.counters.pg.errors, 1);
        let message = format!("sorry, too many clients already: {setting} is reached");
        return refuse(out, "53300", message).await;
    }
    if startup.user.is_empty() {
        return refuse(out, "28000", "no PostgreSQL user name specified in startup packet").await;
    }
    if let Some(credentials) = &shared.credentials {
        if let Err(wait) = shared.logins.may_try(peer.address, &startup.user) {
            let message = format!("too many failed logins; try again in {} s", wait.as_secs() + 1);
            return refuse(out, "28000", message).await;
        }
        match prove(input, out, credentials, &startup.user).await? {
            Proof::Given => shared.logins.succeeded(peer.address),
            Proof::Left => return Ok(None),
            Proof::Wrong => {
                crate::counters::add(&shared.counters.pg.errors, 1);
                shared.logins.failed("PostgreSQL", peer.address, &startup.user);
                let message = format!("password authentication failed for user \"{}\"", cut(&startup.user));
                return refuse(out, "28P01", message).await;
            }
        }
    }
    out.message(b'R', |body| body.extend_from_slice(&0u32.to_be_bytes()));
    input.admit(shared.message_bytes_max);
    Ok(Some(startup))
}

enum Proof {
    Given,
    Wrong,
    Left,
}

async fn prove(input: &mut Input, out: &mut Output, credentials: &Credentials, user: &str) -> Result<Proof, Malformed> {
    out.message(b'R', |body| {
        body.extend_from_slice(&10u32.to_be_bytes());
        body.extend_from_slice(b"SCRAM-SHA-256\0\0");
    });
    out.flush().await?;
    let Some(first) = password(input).await? else { return Ok(Proof::Left) };
    let mut first = Body(first);
    let mechanism = first.text()?;
    let _length = first.u32()?;
    let exchange = if mechanism == "SCRAM-SHA-256" { Exchange::begin(credentials, &first.0) } else { None };
    let Some(exchange) = exchange else { return Ok(Proof::Wrong) };
    out.message(b'R', |body| {
        body.extend_from_slice(&11u32.to_be_bytes());
        body.extend_from_slice(exchange.server_first.as_bytes());
    });
    out.flush().await?;
    let Some(last) = password(input).await? else { return Ok(Proof::Left) };
    // Another user's proof is checked all the same: how long it takes says nothing.
    let answer = exchange.finish(credentials, &last).filter(|_| user == credentials.user);
    let Some(answer) = answer else { return Ok(Proof::Wrong) };
    out.message(b'R', |body| {
        body.extend_from_slice(&12u32.to_be_bytes());
        body.extend_from_slice(answer.as_bytes());
    });
    Ok(Proof::Given)
}

async fn password(input: &mut Input) -> Result<Option<Bytes>, Malformed> {
    match input.next().await? {
        None | Some(Message::Terminate) => Ok(None),
        Some(Message::Password(body)) => Ok(Some(body)),
        Some(_) => Err(Malformed::Fatal("expected password response".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_settings() {
        let expected = [("statement_timeout", "5s"), ("application_name", "a b")];
        let expected: Vec<_> = expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(options("-c statement_timeout=5s --application-name=a\\ b"), expected);
        assert_eq!(options("-cstatement_timeout=5s"), expected[..1]);
        assert!(options(" - -- -c \\").is_empty());
    }
}
