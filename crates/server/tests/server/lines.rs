//! Line protocol over TCP.

use crate::harness::{Server, folder};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

const TS: u64 = 1_704_067_200_000_000_000;

#[test]
fn rows_become_visible_while_the_connection_stays_open() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let mut socket = TcpStream::connect(&server.ilp).unwrap();
    for i in 0..3 {
        writeln!(socket, "t,h=a v={i}i {}", TS + i).unwrap();
        server.wait_for_rows_or_none("t", i as i64 + 1);
    }
}

#[test]
fn many_rows_in_odd_pieces_are_all_there_in_order() {
    let data = folder();
    let server = Server::start(&data, &["--ilp-batch-rows-max", "1000"]);
    let count = 50_000u64;
    let lines: String = (0..count).map(|i| format!("t,h=h{} v={i}i {}\n", i % 10, TS)).collect();
    let mut socket = TcpStream::connect(&server.ilp).unwrap();
    for piece in lines.as_bytes().chunks(7777) {
        socket.write_all(piece).unwrap();
    }
    drop(socket);
    server.wait_for_rows_or_none("t", count as i64);
    let rows = server.exec("select v from t");
    let rows = rows["dataset"].as_array().unwrap();
    // Equal timestamps keep the order of arrival.
    assert!(rows.iter().enumerate().all(|(i, row)| row[0].as_u64() == Some(i as u64)));
}

#[test]
fn rows_before_a_bad_line_are_kept_and_the_connection_is_closed() {
    let data = folder();
    let mut server = Server::start(&data, &[]);
    let mut socket = TcpStream::connect(&server.ilp).unwrap();
    write!(socket, "t v=1i {TS}\nt v=2i {TS}\nt v=oops {TS}\nt v=4i {TS}\n").unwrap();
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    assert!(rest.is_empty());
    let log = server.wait_for_log("line protocol: connection closed");
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    assert_eq!(log["line"], 3);
    assert!(log["error"].as_str().unwrap().contains("column"), "{log}");
    server.wait_for_rows_or_none("t", 2);
    assert_eq!(server.metric("tidalite_line_errors_total{protocol=\"tcp\"}"), 1.0);
}

#[test]
fn rows_before_a_refused_one_are_kept() {
    let data = folder();
    let mut server = Server::start(&data, &[]);
    assert_eq!(server.post("/write", format!("t v=1i {TS}").as_bytes()).status, 204);
    server.send_lines(format!("t v=2i {TS}\nt v=3i {TS}\nt v=\"text\" {TS}\nt v=5i {TS}\n").as_bytes());
    let log = server.wait_for_log("line protocol: connection closed");
    assert!(log.contains("\"line\":3"), "{log}");
    server.wait_for_rows_or_none("t", 3);
}

/// What was parsed while their commit was under way is not committed either, however much it is.
#[test]
fn nothing_behind_a_refused_row_is_kept() {
    let data = folder();
    let mut server = Server::start(&data, &["--ilp-batch-rows-max", "100"]);
    server.exec("CREATE TABLE t (ts TIMESTAMP_NS, v SHORT) TIMESTAMP(ts) PARTITION BY DAY");
    let line = |i: u64| format!("t v={}i {}\n", if i == 1000 { 100_000 } else { i }, TS + i);
    server.send_lines((1..=20_000).map(line).collect::<String>().as_bytes());
    let log = server.wait_for_log("line protocol: connection closed");
    assert!(log.contains("\"line\":1000,"), "{log}");
    // Who closes a connection commits nothing more: there is nothing to wait for.
    assert_eq!(server.value("select count(*) from t"), 999);
    assert_eq!(server.value("select max(v) from t"), 999);
}

/// Rows that come late are brought into order before they are committed: what is refused is the first line all the same.
#[test]
fn the_first_refused_line_is_the_one_named_whatever_the_times() {
    let data = folder();
    let mut server = Server::start(&data, &[]);
    server.exec("CREATE TABLE t (ts TIMESTAMP_NS, v SHORT) TIMESTAMP(ts) PARTITION BY DAY");
    // The latest first; two lines have a value that is no SHORT.
    let line = |i: u64| format!("t v={}i {}\n", if i == 1000 || i == 2000 { 100_000 } else { i }, TS + 6000 - i);
    let lines: String = (1..=6000).map(line).collect();
    let reply = server.post("/write", lines.as_bytes());
    assert_eq!((reply.status, reply.json()["line"].as_i64()), (400, Some(1000)), "{}", reply.body);
    assert_eq!(server.value("select count(*) from t"), 0);
    server.send_lines(lines.as_bytes());
    let log = server.wait_for_log("line protocol: connection closed");
    assert!(log.contains("\"line\":1000"), "{log}");
    server.wait_for_rows_or_none("t", 999);
    let rows = server.exec("select v from t");
    let values: Vec<i64> = rows["dataset"].as_array().unwrap().iter().map(|row| row[0].as_i64().unwrap()).collect();
    assert!(values.iter().copied().eq((1..1000).rev()), "{values:?}");
}

#[test]
fn a_line_without_its_end_is_dropped_when_the_sender_closes() {
    let data = folder();
    let mut server = Server::start(&data, &[]);
    server.send_lines(format!("t v=1i {TS}\nt v=12").as_bytes());
    server.wait_for_log("the connection ended within a line");
    server.wait_for_rows_or_none("t", 1);
}

#[test]
fn a_line_too_long_is_an_error_of_its_connection_only() {
    let data = folder();
    let mut server = Server::start(&data, &["--line-bytes-max", "100KiB"]);
    let mut other = TcpStream::connect(&server.ilp).unwrap();
    let mut socket = TcpStream::connect(&server.ilp).unwrap();
    let _ = socket.write_all(format!("t s=\"{}", "x".repeat(1 << 20)).as_bytes());
    server.wait_for_log("line protocol: connection closed");
    writeln!(other, "t v=1i {TS}").unwrap();
    server.wait_for_rows_or_none("t", 1);
}

#[test]
fn a_slow_sender_holds_nobody_up() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let mut slow = TcpStream::connect(&server.ilp).unwrap();
    let mut fast = TcpStream::connect(&server.ilp).unwrap();
    let line = format!("slow v=1i {TS}\n");
    for (i, byte) in line.bytes().enumerate() {
        slow.write_all(&[byte]).unwrap();
        writeln!(fast, "fast v={i}i {TS}").unwrap();
        server.wait_for_rows_or_none("fast", i as i64 + 1);
    }
    server.wait_for_rows_or_none("slow", 1);
}

#[test]
fn connections_past_the_limit_are_closed() {
    let data = folder();
    let mut server = Server::start(&data, &["--ilp-connections-max", "1"]);
    let mut first = TcpStream::connect(&server.ilp).unwrap();
    writeln!(first, "t v=1i {TS}").unwrap();
    server.wait_for_rows_or_none("t", 1);
    let mut second = TcpStream::connect(&server.ilp).unwrap();
    assert_eq!(second.read(&mut [0; 1]).unwrap_or(0), 0);
    server.wait_for_log("ilp.connections_max");
}

struct Key {
    pair: EcdsaKeyPair,
    line: String,
}

fn key(name: &str) -> Key {
    let random = SystemRandom::new();
    let secret = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, secret.as_ref(), &random).unwrap();
    let public = pair.public_key().as_ref();
    let (x, y) = (URL_SAFE_NO_PAD.encode(&public[1..33]), URL_SAFE_NO_PAD.encode(&public[33..]));
    let line = format!("{name} ec-p-256-sha256 {x} {y}\n");
    Key { pair, line }
}

fn authenticated(address: &str, name: &str, key: &Key, lines: &str) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut writer = socket.try_clone().unwrap();
    writeln!(writer, "{name}").unwrap();
    let mut challenge = String::new();
    reader.read_line(&mut challenge).unwrap();
    assert_eq!(challenge.len(), 513);
    let signature = key.pair.sign(&SystemRandom::new(), challenge.trim_end().as_bytes()).unwrap();
    // Signature and lines in one piece: nothing behind the signature may be lost.
    let _ = write!(writer, "{}\n{lines}", STANDARD.encode(signature.as_ref()));
    socket
}

#[test]
fn senders_prove_who_they_are() {
    let data = folder();
    let (mine, other) = (key("me"), key("me"));
    let file = data.path().join("auth.txt");
    std::fs::write(&file, &mine.line).unwrap();
    let folder = folder();
    let mut server = Server::start(&folder, &["--ilp-auth-file", file.to_str().unwrap()]);
    let _open = authenticated(&server.ilp, "me", &mine, &format!("t v=1i {TS}\n"));
    server.wait_for_rows_or_none("t", 1);
    authenticated(&server.ilp, "me", &other, &format!("t v=2i {TS}\n"));
    server.wait_for_log("authentication failed");
    authenticated(&server.ilp, "you", &mine, &format!("t v=3i {TS}\n"));
    server.wait_for_log("authentication failed");
    server.send_lines(format!("t v=4i {TS}\n").repeat(100).as_bytes());
    server.wait_for_log("authentication failed");
    assert_eq!(server.value("select count(*) from t"), 1);
}

#[test]
fn two_clients_may_create_the_same_column_at_once() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let addresses = [server.http.clone(), server.http.clone()];
    let values = ["1i", "\"text\""];
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let send = |(address, value): (String, &str)| {
            let body = format!("race v={value} {TS}\n");
            let head = format!("POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
            crate::harness::request(&address, &head, body.as_bytes()).status
        };
        let both: Vec<_> = addresses.into_iter().zip(values).map(|one| scope.spawn(move || send(one))).collect();
        both.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // Whoever is second finds the column of the first: a number fits a text, not the other way round.
    let kept = statuses.iter().filter(|s| **s == 204).count();
    assert!(kept >= 1 && statuses.iter().all(|s| *s == 204 || *s == 400), "{statuses:?}");
    assert_eq!(server.value("select count(*) from race"), kept);
}
