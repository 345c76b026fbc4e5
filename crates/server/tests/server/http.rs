//! Writes over HTTP, and what every request meets.

use crate::harness::{Server, folder, parse_reply, request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::net::TcpStream;

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_write_is_acknowledged_when_the_next_query_sees_it() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let reply = server.post("/write", b"t,host=a v=1i 1704067200000000000\nu v=2i 1704067200000000000\n");
    assert_eq!((reply.status, reply.body.as_str()), (204, ""));
    assert_eq!(server.value("select v from t"), 1);
    let reply = server.post("/api/v2/write?bucket=b&org=o&precision=s", b"t,host=b v=3i 1704067201");
    assert_eq!(reply.status, 204);
    let rows = server.exec("select * from t order by timestamp");
    assert_eq!(
        rows["dataset"],
        serde_json::json!([["a", 1, "2024-01-01T00:00:00.000000Z"], ["b", 3, "2024-01-01T00:00:01.000000Z"]])
    );
    assert_eq!(rows["timestamp"], 2);
    assert_eq!(server.post("/write", b"").status, 204);
}

#[test]
fn a_bad_line_keeps_nothing_of_its_request_and_is_named() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let reply = server.post("/write", b"good v=1i 1704067200000000000\nbad v=abc 1704067200000000000\n");
    assert_eq!(reply.status, 400);
    assert!(reply.head.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{}", reply.head);
    let json = reply.json();
    assert_eq!((json["code"].as_str(), json["line"].as_i64()), (Some("invalid"), Some(2)));
    let message = json["message"].as_str().unwrap();
    assert!(
        message.starts_with("failed to parse line protocol:errors encountered on line(s):\nerror in line 2: "),
        "{message}"
    );
    assert!(json["errorId"].as_str().is_some_and(|id| !id.is_empty()));
    assert_eq!(server.get("/chk?f=json&j=good").body, "{\"status\":\"Does not exist\"}");
    // A value that does not fit its column is found by the commit.
    assert_eq!(server.post("/write", b"t v=1i 1704067200000000000").status, 204);
    let reply = server.post("/write", b"t v=2i 1704067200000000000\nt v=\"text\" 1704067200000000000\n");
    assert_eq!((reply.status, reply.json()["line"].as_i64()), (400, Some(2)));
    assert_eq!(server.value("select count(*) from t"), 1);
}

#[test]
fn a_request_sent_again_changes_nothing_in_a_table_with_upsert_keys() {
    let data = folder();
    let server = Server::start(&data, &[]);
    server.exec("CREATE TABLE t (ts TIMESTAMP_NS, host SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY DEDUP UPSERT KEYS(ts, host)");
    let lines =
        b"t,host=a v=1i 1704067200000000000\nt,host=b v=2i 1704067200000000000\nt,host=a v=3i 1704067201000000000\n";
    for _ in 0..3 {
        assert_eq!(server.post("/write", lines).status, 204);
        assert_eq!(server.value("select count(*) from t"), 3);
    }
    assert_eq!(server.post("/write", b"t,host=b v=5i 1704067200000000000\n").status, 204);
    assert_eq!(server.value("select sum(v) from t"), 9);
    let updated = server.exec("UPDATE t SET v = 7 WHERE host = 'a'");
    assert_eq!(updated, serde_json::json!({"ddl": "OK", "updated": 2}));
    assert_eq!(server.exec("DELETE FROM t WHERE v = 7"), serde_json::json!({"ddl": "OK", "updated": 2}));
    assert_eq!(server.value("select count(*) from t"), 1);
}

#[test]
fn bodies_may_be_compressed_and_chunked() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let lines: String =
        (0..20_000).map(|i| format!("t,host=h{} v={i}i {}\n", i % 7, 1_704_067_200_000_000_000u64 + i)).collect();
    let body = gzipped(lines.as_bytes());
    assert_eq!(server.post_with("/write", "Content-Encoding: gzip\r\n", &body).status, 204);
    assert_eq!(server.value("select sum(v) from t"), 20_000 * 19_999 / 2);
    let half = server.post_with("/write", "Content-Encoding: gzip\r\n", &body[..body.len() / 2]);
    assert_eq!(half.status, 400);
    assert_eq!(server.post_with("/write", "Content-Encoding: gzip\r\n", b"no gzip").status, 400);
    assert_eq!(server.post_with("/write", "Content-Encoding: br\r\n", b"t v=1i").status, 415);
    assert_eq!(server.value("select count(*) from t"), 20_000);
    // In pieces that end within lines.
    let mut chunked = Vec::new();
    for piece in lines.as_bytes().chunks(333) {
        chunked.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        chunked.extend_from_slice(piece);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let head = "POST /write HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(request(&server.http, head, &chunked).status, 204);
    assert_eq!(server.value("select count(*) from t"), 40_000);
}

#[test]
fn a_body_too_large_is_refused_and_the_reason_arrives() {
    let data = folder();
    let server = Server::start(&data, &["--http-body-bytes-max", "64KiB"]);
    let line = b"t v=1i 1704067200000000000\n";
    let body = line.repeat(5000);
    let reply = server.post("/write", &body);
    assert_eq!(reply.status, 413, "{}", reply.body);
    assert!(reply.json()["message"].as_str().unwrap().contains("http.body_bytes_max"));
    // Nor may it be blown up by decompression.
    assert_eq!(server.post_with("/write", "Content-Encoding: gzip\r\n", &gzipped(&body)).status, 413);
    assert_eq!(server.post("/write", &line.repeat(100)).status, 204);
}

#[test]
fn parameters_and_methods_are_checked() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let reply = server.post("/write?precision=zz", b"t v=1i 1");
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("zz"));
    assert_eq!(server.get("/write").status, 405);
    assert_eq!(server.post("/ping", b"").status, 405);
    assert_eq!(server.get("/nosuchpath").status, 404);
    let ping = server.get("/ping");
    assert_eq!(ping.status, 204);
    assert!(ping.head.to_ascii_lowercase().contains("x-influxdb-version: v"), "{}", ping.head);
    let settings = server.get("/settings").json();
    assert_eq!(settings["config"]["line.proto.support.versions"], serde_json::json!([1, 2, 3]));
    assert_eq!(settings["config"]["cairo.max.file.name.length"], 127);
    assert!(server.get("/").body.contains("Tidalite"));
}

#[test]
fn credentials_are_asked_for() {
    let data = folder();
    let server = Server::start_with(
        &data,
        &["--http-tokens", "tok"],
        &[("TIDALITE_HTTP_USER", "u"), ("TIDALITE_HTTP_PASSWORD", "p")],
    );
    assert_eq!(server.get("/ping").status, 204);
    assert_eq!(server.get("/settings").status, 200);
    // The files of the console contain no data.
    assert_eq!(server.get("/").status, 200);
    for path in ["/exec?query=select%201", "/nosuch"] {
        let reply = server.get(path);
        assert_eq!(reply.status, 401, "{path}");
        assert!(reply.head.to_ascii_lowercase().contains("www-authenticate: basic"));
    }
    assert_eq!(server.post("/write", b"t v=1i").status, 401);
    let basic = format!("Authorization: Basic {}\r\n", STANDARD.encode("u:p"));
    assert_eq!(server.post_with("/write", &basic, b"t v=1i 1704067200000000000").status, 204);
    assert_eq!(server.post_with("/write", "Authorization: Bearer tok\r\n", b"t v=2i 1704067200000000000").status, 204);
    let wrong = format!("Authorization: Basic {}\r\n", STANDARD.encode("u:q"));
    assert_eq!(server.post_with("/write", &wrong, b"t v=1i").status, 401);
}

#[test]
fn pages_of_other_sites_cannot_send_statements() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let head = "GET /exec?query=select%201 HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: cross-site\r\n";
    assert_eq!(request(&server.http, head, b"").status, 403);
}

#[test]
fn a_connection_serves_many_requests() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let mut socket = TcpStream::connect(&server.http).unwrap();
    for i in 0..50 {
        let body = format!("t v={i}i {}", 1_704_067_200_000_000_000u64 + i);
        write!(socket, "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert_eq!(parse_reply(&head).status, 204);
    }
    assert_eq!(server.value("select count(*) from t"), 50);
    assert_eq!(server.metric("tidalite_line_rows_total{protocol=\"http\"}"), 50.0);
}

#[test]
fn health_and_metrics_are_served_apart() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let status = request(&server.health, "GET /status HTTP/1.1\r\nHost: x\r\n", b"");
    assert_eq!(status.status, 200);
    assert!(status.body.starts_with("Status: Healthy"), "{}", status.body);
    server.exec("select 1");
    assert!(server.metric("tidalite_query_seconds_count") >= 1.0);
    assert_eq!(request(&server.health, "GET /nosuch HTTP/1.1\r\nHost: x\r\n", b"").status, 404);
}
