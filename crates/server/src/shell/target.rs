//! Who answers: a server over HTTP, or a data folder opened here.
//!
//! Both give the JSON of `/exec`, so that there is one way to print; values keep the text they have there.

use crate::answer::{Answer as Stream, Form, JsonForm, Limit};
use crate::config::{Config, Given};
use crate::errors::with_hint;
use crate::process::socket_runtime;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Arg, ArgMatches};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidalite::{Database, Error, ErrorKind, FileAccess, QueryOptions, Response};
use tokio::runtime::Runtime;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

pub enum Target {
    Folder { database: Database, runtime: Runtime, name: String },
    Server(Server),
}

/// Clones share their connections.
#[derive(Clone, Debug)]
pub struct Server {
    agent: ureq::Agent,
    url: String,
    authorization: Option<String>,
}

/// Connections that are kept to be used again.
pub const CONNECTIONS: usize = 8;

#[derive(Debug, Deserialize)]
pub struct Column {
    pub name: String,
    #[serde(rename = "type")]
    pub type_name: String,
}

pub enum Answer {
    Rows {
        columns: Vec<Column>,
        rows: Vec<Vec<Box<RawValue>>>,
        json: String,
    },
    /// What a statement without rows says.
    Done {
        text: String,
        json: String,
    },
}

#[derive(Deserialize)]
struct Reply {
    columns: Option<Vec<Column>>,
    dataset: Option<Vec<Vec<Box<RawValue>>>>,
    error: Option<String>,
    position: Option<serde_json::Value>,
    ddl: Option<String>,
    dml: Option<String>,
    updated: Option<u64>,
}

/// A server that does not answer a connection within this time is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// The largest answer the shell holds in memory.
const REPLY_BYTES_MAX: u64 = 4 << 30;

/// How a server is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'a> {
    pub user: Option<&'a str>,
    pub token: Option<&'a str>,
    /// Authorities that are trusted instead of those of the web.
    pub ca_file: Option<&'a str>,
}

impl<'a> Access<'a> {
    #[must_use]
    pub fn of(matches: &'a ArgMatches) -> Access<'a> {
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        Access { user: text("user"), token: text("token"), ca_file: text("ca-file") }
    }

    /// The arguments that say so.
    #[must_use]
    pub fn args() -> [Arg; 3] {
        [
            Arg::new("user")
                .long("user")
                .value_name("NAME:PASSWORD")
                .env("TIDALITE_USER")
                .help("HTTP basic authentication"),
            Arg::new("token").long("token").value_name("TEXT").env("TIDALITE_TOKEN").help("Bearer authentication"),
            Arg::new("ca-file")
                .long("ca-file")
                .value_name("FILE")
                .env("TIDALITE_CA_FILE")
                .help("For https://: the certificates (PEM) to trust, instead of those that browsers trust"),
        ]
    }
}

fn authorities(file: &str) -> Result<RootCerts, String> {
    let bad = |problem: String| format!("--ca-file {file}: {problem}");
    let pem = std::fs::read(file).map_err(|e| bad(format!("could not be read: {e}")))?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|e| bad(format!("is not PEM: {e}")))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        Err(bad("there is no certificate in it".to_owned()))
    } else {
        Ok(RootCerts::Specific(Arc::new(certificates)))
    }
}

impl Target {
    /// # Errors
    /// The message for the user.
    pub fn open(dir: &Path) -> Result<Target, String> {
        if !dir.is_dir() {
            return Err(format!("there is no data folder {}", dir.display()));
        }
        let flags = [("data", dir.display().to_string())];
        let given = Given::gather(None, std::env::vars(), flags.into_iter()).map_err(|e| e.to_string())?;
        let mut config = Config::new(&given).map_err(|e| e.to_string())?;
        // The user of this process can read the same files without the database.
        config.database.file_access = FileAccess::unrestricted();
        let runtime = socket_runtime().map_err(|e| format!("could not start threads: {e}"))?;
        let _inside = runtime.enter();
        let database = Database::open(config.database).map_err(|e| {
            let ask = if e.kind == ErrorKind::Conflict { "; a server runs on it: ask that one with --url" } else { "" };
            format!("could not open {}: {}{ask}", dir.display(), with_hint(&e))
        })?;
        drop(_inside);
        Ok(Target::Folder { database, runtime, name: dir.display().to_string() })
    }

    /// # Errors
    /// When the address is not one of a server, or the file of authorities is no good.
    pub fn connect(url: &str, access: Access<'_>) -> Result<Target, String> {
        let Access { user, token, ca_file } = access;
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        if scheme != "http" && scheme != "https" {
            return Err(format!("--url is {url:?}; http:// and https:// are served"));
        }
        let (credentials, host) = rest.rsplit_once('@').map_or((None, rest), |(c, h)| (Some(c), h));
        let user = user.or(credentials).map(|u| format!("Basic {}", STANDARD.encode(u)));
        let authorization = user.or_else(|| token.map(|t| format!("Bearer {t}")));
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .max_idle_connections_per_host(CONNECTIONS);
        if let Some(file) = ca_file {
            config = config.tls_config(TlsConfig::builder().root_certs(authorities(file)?).build());
        }
        let url = format!("{scheme}://{}", host.trim_end_matches('/'));
        Ok(Target::Server(Server { agent: config.build().into(), url, authorization }))
    }

    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Target::Folder { name, .. } => format!("data folder {name}"),
            Target::Server(server) => server.url.clone(),
        }
    }

    /// # Errors
    /// What the database says, as a message with the place in the statement.
    pub fn ask(&self, sql: &str) -> Result<Answer, String> {
        let json = match self {
            Target::Folder { database, runtime, .. } => {
                runtime.block_on(ask_folder(database, sql)).map_err(|e| message(sql, &with_hint(&e), e.position))?
            }
            Target::Server(server) => {
                server.post("/exec?quoteNotFinite=true", "text/plain; charset=utf-8", sql.as_bytes())?
            }
        };
        let reply: Reply = serde_json::from_str(&json).map_err(|e| {
            let start: String = json.chars().take(200).collect();
            format!("this is not an answer of Tidalite ({e}): {start}")
        })?;
        if let Some(error) = reply.error {
            let position = reply.position.and_then(|p| p.as_u64()).map(|p| byte_position(sql, p as usize));
            return Err(message(sql, &error, position));
        }
        if let (Some(columns), Some(rows)) = (reply.columns, reply.dataset) {
            return Ok(Answer::Rows { columns, rows, json });
        }
        let text = reply.dml.or(reply.ddl).unwrap_or_default();
        let text = reply.updated.map_or(text.clone(), |n| format!("{text}, {n} rows"));
        Ok(Answer::Done { text, json })
    }

    /// Sends a body to a server and gives the answer, whatever its status.
    ///
    /// # Errors
    /// When there is no server, or it wants to know who asks.
    pub fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Result<String, String> {
        match self {
            Target::Folder { name, .. } => Err(format!("{name} is no server")),
            Target::Server(server) => server.post(path, content_type, body),
        }
    }

    /// # Errors
    /// When the folder could not be closed cleanly.
    pub fn close(self) -> Result<(), String> {
        match self {
            Target::Folder { database, .. } => database.close().map_err(|e| format!("could not close the folder: {e}")),
            Target::Server(_) => Ok(()),
        }
    }
}

impl Server {
    /// # Errors
    /// As [`Target::post`].
    pub fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Result<String, String> {
        let url = format!("{}{path}", self.url);
        let mut request = self.agent.post(&url).content_type(content_type);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let mut response = request.send(body).map_err(|e| {
            format!(
                "could not reach {}: {e}; is a server running? `tidalite serve` starts one, `tidalite demo` one with data",
                self.url
            )
        })?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(REPLY_BYTES_MAX).read_to_string();
        let text = text.map_err(|e| format!("the answer broke off: {e}"))?;
        match status {
            401 => Err("the server wants to know who you are: give --user or --token".to_owned()),
            // Refusals before the routing of a request are plain text, not JSON.
            400.. if !text.starts_with('{') => Err(text.trim_end().to_owned()),
            _ => Ok(text),
        }
    }
}

async fn ask_folder(database: &Database, sql: &str) -> Result<String, Error> {
    let options = QueryOptions { client: "shell".to_owned(), ..QueryOptions::default() };
    match database.execute(sql, options).await? {
        Response::Done { tag, rows } => Ok(match tag {
            "INSERT" | "UPDATE" | "DELETE" => format!("{{\"dml\":\"{tag}\",\"updated\":{rows}}}"),
            _ => format!("{{\"ddl\":\"{tag}\"}}"),
        }),
        Response::Rows(rows) => {
            let form = Form::Json(JsonForm { not_finite_quotes: true, ..JsonForm::default() });
            let mut stream = Stream::start(sql.to_owned(), rows, form, Limit::ALL, &[]).await?;
            let mut out = Vec::new();
            while let Some(chunk) = stream.next_chunk().await {
                out.extend_from_slice(&chunk?);
            }
            Ok(String::from_utf8_lossy(&out).into_owned())
        }
    }
}

fn byte_position(sql: &str, chars: usize) -> usize {
    sql.char_indices().nth(chars).map_or(sql.len(), |(i, _)| i)
}

/// The error, and under the line of the statement a mark where it is.
fn message(sql: &str, error: &str, position: Option<usize>) -> String {
    let Some(at) = position.filter(|at| *at > 0 && sql.is_char_boundary(*at)) else { return format!("error: {error}") };
    let from = sql[..at].rfind('\n').map_or(0, |i| i + 1);
    let line = sql[from..].lines().next().unwrap_or_default();
    let indent = " ".repeat(sql[from..at].chars().count());
    format!("error: {error}\n  {line}\n  {indent}^")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_point_at_their_place() {
        let sql = "select 1,\n  nosuch";
        assert_eq!(message(sql, "no such column", Some(12)), "error: no such column\n    nosuch\n    ^");
        assert_eq!(message(sql, "broken", None), "error: broken");
        assert_eq!(message(sql, "end", Some(999)), "error: end");
    }

    #[test]
    fn addresses_may_carry_who_asks() {
        let Ok(Target::Server(Server { url, authorization, .. })) =
            Target::connect("http://u:p@db:9000/", Access::default())
        else {
            panic!("no server")
        };
        assert_eq!((url.as_str(), authorization.as_deref()), ("http://db:9000", Some("Basic dTpw")));
        let Ok(Target::Server(Server { url, .. })) = Target::connect("https://db", Access::default()) else {
            panic!("no server")
        };
        assert_eq!(url, "https://db");
        assert!(Target::connect("ftp://db", Access::default()).is_err());
    }
}
