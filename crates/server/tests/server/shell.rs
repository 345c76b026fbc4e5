//! `tidalite sql`.

use crate::harness::{Server, binary, folder};
use std::io::Write;
use std::process::Stdio;

fn run(arguments: &[&str], input: &str) -> (bool, String, String) {
    let mut command = binary();
    command.arg("sql").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn one_shot_queries_print_tables_csv_and_json() {
    let data = folder();
    let server = Server::start(&data, &[]);
    assert_eq!(
        server.post("/write", b"t,s=a n=1i 1704067200000000000\nt,s=bb n=20i 1704067201000000000\n").status,
        204
    );
    let url = format!("http://{}", server.http);
    let sql = "select s, n from t order by n";
    let (ok, out, _) = run(&["--url", &url, sql], "");
    assert!(ok);
    assert_eq!(out, " s  |  n\n----+----\n a  |  1\n bb | 20\n");
    assert_eq!(run(&["--url", &url, "--format", "csv", sql], "").1, "\"s\",\"n\"\r\n\"a\",1\r\n\"bb\",20\r\n");
    assert!(run(&["--url", &url, "--format", "json", sql], "").1.contains("\"dataset\":[[\"a\",1],[\"bb\",20]]"));
    let (ok, _, error) = run(&["--url", &url, "select nosuch from t"], "");
    assert!(!ok && error.contains("nosuch"), "{error}");
    // Statements may come from a file.
    let (ok, out, error) = run(&["--url", &url, "--format", "csv"], "select 1 x; select 2 y;\n");
    assert!(ok, "{error}");
    assert_eq!(out, "\"x\"\r\n1\r\n\"y\"\r\n2\r\n");
    // What is no number is no NULL either.
    let odd = "select 'NaN'::double a, '-Infinity'::float b, null::double c";
    assert_eq!(run(&["--url", &url, odd], "").1, "   a |         b | c\n-----+-----------+---\n NaN | -Infinity |\n");
    assert!(server.stop().success());
    let (ok, out, error) = run(&["--data", data.path().to_str().unwrap(), "--format", "csv", sql], "");
    assert!(ok, "{error}");
    assert_eq!(out, "\"s\",\"n\"\r\n\"a\",1\r\n\"bb\",20\r\n");
}

#[test]
fn without_a_server_it_says_how_to_start_one() {
    let (ok, _, error) = run(&["--url", "http://127.0.0.1:1", "select 1"], "");
    assert!(!ok && error.contains("tidalite serve"), "{error}");
    let (ok, _, error) = run(&["--data", "/nowhere/at/all", "select 1"], "");
    assert!(!ok && error.contains("there is no data folder"), "{error}");
}
