//! Start, stop, and what keeps a server from starting.

use crate::harness::{Server, binary, escaped, folder};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Output;

const TS: u64 = 1_704_067_200_000_000_000;

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = binary().args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

const FREE: [&str; 8] =
    ["--http", "127.0.0.1:0", "--pg", "127.0.0.1:0", "--ilp", "127.0.0.1:0", "--health", "127.0.0.1:0"];

#[test]
fn a_stop_commits_what_arrived_and_a_start_finds_it() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let mut socket = TcpStream::connect(&server.ilp).unwrap();
    let lines: String = (0..20_000).map(|i| format!("t v={i}i {}\n", TS + i)).collect();
    socket.write_all(lines.as_bytes()).unwrap();
    // The connection is open and maybe not read yet: what the system has received is committed all the same.
    server.wait_for_accept();
    let status = server.stop();
    assert!(status.success(), "{status}");
    let server = Server::start(&data, &[]);
    assert_eq!(server.value("select count(*) from t"), 20_000);
    assert!(server.stop().success());
}

#[test]
fn an_acknowledged_write_survives_a_kill() {
    let data = folder();
    for round in 0..3 {
        let server = Server::start(&data, &[]);
        for i in 0..20 {
            assert_eq!(server.post("/write", format!("t v={i}i {}", TS + i).as_bytes()).status, 204);
        }
        server.kill();
        let server = Server::start(&data, &[]);
        assert_eq!(server.value("select count(*) from t"), (round + 1) * 20);
        server.kill();
    }
}

#[test]
fn interrupts_stop_it_too() {
    let data = folder();
    let mut server = Server::start(&data, &[]);
    server.signal("INT");
    server.wait_for_log("\"stopped\"");
}

#[test]
fn a_statement_without_end_does_not_keep_it_from_stopping() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let lines: String = (0..20_000).map(|i| format!("t n={i}i {}\n", TS + i)).collect();
    assert_eq!(server.post("/write", lines.as_bytes()).status, 204);
    let sql = escaped("select count(*) from t a cross join t b cross join t c where a.n + b.n + c.n < 0");
    let mut socket = TcpStream::connect(&server.http).unwrap();
    write!(socket, "GET /exec?query={sql} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    server.wait_for_activity("cross join t c");
    assert!(server.stop().success());
}

#[test]
fn a_port_in_use_is_explained() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = folder();
    let mut arguments = vec!["serve", "--data", data.path().to_str().unwrap()];
    arguments.extend(FREE);
    arguments[4] = &address;
    let (code, message) = refused(&arguments);
    assert_eq!(code, Some(1));
    assert!(message.contains(&format!("could not listen on {address} for HTTP")), "{message}");
    assert!(message.contains("--http HOST:PORT"), "{message}");
}

#[test]
fn a_data_folder_serves_one_process() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let mut arguments = vec!["serve", "--data", data.path().to_str().unwrap()];
    arguments.extend(FREE);
    let (code, message) = refused(&arguments);
    assert_eq!(code, Some(1));
    assert!(message.contains("in use by another process"), "{message}");
    let (code, message) = refused(&["sql", "--data", data.path().to_str().unwrap(), "select 1"]);
    assert_eq!(code, Some(1));
    assert!(message.contains("--url"), "{message}");
    assert!(server.stop().success());
}

#[test]
fn bad_settings_are_explained() {
    let cases: [(&[&str], &str); 4] = [
        (
            &["serve", "--durability", "sometimes"],
            "setting \"durability\" is \"sometimes\" (from flag); allowed is sync, os",
        ),
        (&["serve", "--http", "nowhere"], "setting \"http.listen\" is \"nowhere\""),
        (&["serve", "--http", "0.0.0.0:0"], "--insecure-bind"),
        (&["serve", "--config", "/nowhere.toml"], "settings file /nowhere.toml: could not be read"),
    ];
    for (arguments, part) in cases {
        let (code, message) = refused(arguments);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn the_demo_loads_and_answers() {
    let data = folder();
    let mut command = binary();
    command.args(["demo", "--check", "--hosts", "5", "--data", data.path().to_str().unwrap()]).args(FREE);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("7200 rows in cpu, 7200 rows in readings"), "{text}");
    // A second time what is there is kept.
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("7200 rows in cpu, 7200 rows in readings") && !text.contains("Loaded"), "{text}");
}
