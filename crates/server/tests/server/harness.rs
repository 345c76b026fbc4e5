//! A server under test and a plain HTTP client.
//!
//! Ports are chosen by the system and read from the log; a server that is dropped is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything takes, so that a test fails rather than hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidalite"));
    // What is set on the machine of the tests is not what is tested.
    for (name, _) in std::env::vars().filter(|(n, _)| n.starts_with("TIDALITE_")) {
        command.env_remove(name);
    }
    command
}

pub struct Server {
    child: Child,
    log: Receiver<String>,
    seen: Vec<String>,
    pub http: String,
    pub pg: String,
    pub ilp: String,
    pub health: String,
}

impl Server {
    pub fn start(data: &TempDir, extra: &[&str]) -> Server {
        Server::start_with(data, extra, &[])
    }

    pub fn start_with(data: &TempDir, extra: &[&str], env: &[(&str, &str)]) -> Server {
        let mut child = binary()
            .arg("serve")
            .args([
                "--http",
                "127.0.0.1:0",
                "--pg",
                "127.0.0.1:0",
                "--ilp",
                "127.0.0.1:0",
                "--health",
                "127.0.0.1:0",
                "--log-format",
                "json",
            ])
            .args(["--data", data.path().to_str().unwrap()])
            .args(extra)
            .envs(env.iter().copied())
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, log) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let none = String::new();
        let mut server = Server {
            child,
            log,
            seen: Vec::new(),
            http: none.clone(),
            pg: none.clone(),
            ilp: none.clone(),
            health: none,
        };
        for protocol in ["http", "pg", "ilp", "health"] {
            let line = server.wait_for_log(&format!("\"protocol\":\"{protocol}\""));
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            let address = line["address"].as_str().unwrap().to_owned();
            match protocol {
                "http" => server.http = address,
                "pg" => server.pg = address,
                "ilp" => server.ilp = address,
                _ => server.health = address,
            }
        }
        server.wait_for_log("\"ready\"");
        server
    }

    /// The next log line with this in it.
    pub fn wait_for_log(&mut self, part: &str) -> String {
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(error) => panic!("no {part} in the log ({error}):\n{}", self.seen.join("\n")),
            }
        }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// SIGTERM, and how it ended.
    pub fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().unwrap()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn get(&self, path: &str) -> Reply {
        request(&self.http, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n"), b"")
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Reply {
        self.post_with(path, "", body)
    }

    pub fn post_with(&self, path: &str, headers: &str, body: &[u8]) -> Reply {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{headers}", body.len());
        request(&self.http, &head, body)
    }

    pub fn exec(&self, sql: &str) -> serde_json::Value {
        let reply = self.get(&format!("/exec?query={}", escaped(sql)));
        serde_json::from_str(&reply.body).unwrap_or_else(|e| panic!("{sql}: {e}: {}", reply.body))
    }

    /// The only value of the only row.
    pub fn value(&self, sql: &str) -> serde_json::Value {
        let answer = self.exec(sql);
        assert_eq!(answer["count"], 1, "{sql}: {answer}");
        answer["dataset"][0][0].clone()
    }

    /// Waits until `count(*)` of the table is this.
    pub fn wait_for_rows(&self, table: &str, count: i64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.exec(&format!("select count(*) from {table}"));
            let now = answer["dataset"][0][0].as_i64();
            if now == Some(count) {
                return;
            }
            assert!(Instant::now() < deadline, "{table} has {now:?} rows, not {count}: {answer}");
        }
    }

    /// Waits for a table that may not exist yet.
    pub fn wait_for_rows_or_none(&self, table: &str, count: i64) {
        let deadline = Instant::now() + PATIENCE;
        while self.get(&format!("/chk?j={table}")).body != "Exists" {
            assert!(Instant::now() < deadline, "there is no table {table}");
        }
        self.wait_for_rows(table, count);
    }

    /// Waits until a line protocol connection was accepted.
    pub fn wait_for_accept(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.metric("tidalite_connections_total{protocol=\"tcp\"}") == 0.0 {
            assert!(Instant::now() < deadline, "no connection was accepted");
        }
    }

    /// Whether a statement with this in it runs, other than the one that asks.
    pub fn runs(&self, part: &str) -> bool {
        self.exec("select * from query_activity()")["dataset"].to_string().contains(part)
    }

    pub fn wait_for_activity(&self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.runs(part) {
            assert!(Instant::now() < deadline, "no statement with {part} ran");
        }
    }

    pub fn metric(&self, name: &str) -> f64 {
        let reply = request(&self.health, "GET /metrics HTTP/1.1\r\nHost: x\r\n", b"");
        let line = reply.body.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    }

    /// Sends lines over TCP and closes.
    pub fn send_lines(&self, lines: &[u8]) {
        let mut socket = TcpStream::connect(&self.ilp).unwrap();
        socket.write_all(lines).unwrap();
        // A server that did not want them has closed already.
        let _ = socket.shutdown(Shutdown::Write);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
    /// Whether the body came to its proper end.
    pub is_whole: bool,
}

impl Reply {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

/// One request on a connection of its own.
pub fn request(address: &str, head: &str, body: &[u8]) -> Reply {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    // A server that refuses may have stopped reading.
    let _ = socket.write_all(body);
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    parse_reply(&bytes)
}

pub fn parse_reply(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| panic!("no head: {bytes:?}"));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let rest = &bytes[end + 4..];
    let (body, is_whole) = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunked(rest)
    } else {
        (rest.to_vec(), true)
    };
    Reply { status, head, body: String::from_utf8_lossy(&body).into_owned(), is_whole }
}

fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (out, true);
        }
        if rest.len() < end + 2 + size + 2 {
            break;
        }
        out.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
    (out, false)
}

pub fn escaped(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}
