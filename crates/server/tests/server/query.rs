//! SQL over HTTP.

use crate::harness::{PATIENCE, Server, escaped, folder};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

fn with_rows(count: usize) -> (tempfile::TempDir, Server) {
    let data = folder();
    let server = Server::start(&data, &[]);
    let lines: String =
        (0..count).map(|i| format!("t,s=a\\ b d={}.5,n={i}i {}\n", i % 100, 1_704_067_200_000_000_000 + i)).collect();
    assert_eq!(server.post("/write", lines.as_bytes()).status, 204);
    (data, server)
}

#[test]
fn exec_answers_in_the_form_of_questdb() {
    let (_data, server) = with_rows(3);
    let reply = server.get(&format!("/exec?query={}", escaped("select s, d, n from t order by n")));
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.body,
        "{\"query\":\"select s, d, n from t order by n\",\"columns\":[{\"name\":\"s\",\"type\":\"SYMBOL\"},\
         {\"name\":\"d\",\"type\":\"DOUBLE\"},{\"name\":\"n\",\"type\":\"LONG\"}],\"timestamp\":-1,\
         \"dataset\":[[\"a b\",0.5,0],[\"a b\",1.5,1],[\"a b\",2.5,2]],\"count\":3}"
    );
    let get = |parameters: &str| {
        server.get(&format!("/exec?query={}&{parameters}", escaped("select n from t order by n"))).body
    };
    assert_eq!(get("nm=true&limit=1"), "{\"dataset\":[[0]],\"count\":1}");
    assert_eq!(get("nm=true&limit=2,3&quoteLargeNum=true"), "{\"dataset\":[[\"1\"],[\"2\"]],\"count\":2}");
    assert_eq!(get("nm=true&limit=1&count=true"), "{\"dataset\":[[0]],\"count\":3}");
    assert!(get("timings=true&explain=true").contains("\"timings\":{\"authentication\":0,\"compiler\":"));
    assert!(get("limit=abc").contains("\"error\":\"parameter limit is"));
    // The name of a table alone is a query, and knows its timestamp.
    assert_eq!(server.exec("t")["timestamp"], 3);
}

#[test]
fn statements_come_by_post_too() {
    let (_data, server) = with_rows(3);
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let reply = server.post_with("/exec", form, b"query=select+count(*)+from+t&nm=true");
    assert_eq!(reply.body, "{\"dataset\":[[3]],\"count\":1}");
    let reply = server.post_with("/exec?nm=true", "Content-Type: text/plain\r\n", b"select 'a=b&c' x");
    assert_eq!(reply.body, "{\"dataset\":[[\"a=b&c\"]],\"count\":1}");
}

#[test]
fn a_text_is_validated_and_does_not_run() {
    let (_data, server) = with_rows(3);
    let path = "/api/v1/sql/validate";
    let get = |sql: &str| server.get(&format!("{path}?query={}", escaped(sql)));
    assert_eq!(get("drop table t").body, "{\"ok\":true}");
    assert_eq!(server.exec("select count(*) from t")["dataset"], serde_json::json!([[3]]));
    let reply = get("select 'é', x form t");
    let hint = "did you mean FROM instead of form?";
    let wrong = format!(
        "{{\"error\":\"syntax error: expected end of statement, found t\",\"position\":19,\"hint\":\"{hint}\"}}"
    );
    assert_eq!((reply.status, reply.body), (400, wrong));
    let plain = server.post_with(path, "Content-Type: text/plain\r\n", b"select a=b&c");
    assert_eq!(plain.body, "{\"ok\":true}");
    let form = server.post_with(path, "Content-Type: application/x-www-form-urlencoded\r\n", b"query=select+1+2");
    assert_eq!(form.body, "{\"error\":\"syntax error: expected end of statement, found 2\",\"position\":9}");
    assert_eq!(get("").body, "{\"error\":\"empty statement\",\"position\":0}");
}

#[test]
fn statements_without_rows_say_ok() {
    let data = folder();
    let server = Server::start(&data, &[]);
    let ok = |sql: &str| server.get(&format!("/exec?query={}", escaped(sql))).body;
    assert_eq!(ok("create table t (s symbol, ts timestamp) timestamp(ts) partition by day wal"), "{\"ddl\":\"OK\"}");
    assert_eq!(ok("insert into t values ('a', '2024-01-01T00:00:00.000000Z')"), "{\"dml\":\"OK\"}");
    assert_eq!(server.exec("t")["dataset"], serde_json::json!([["a", "2024-01-01T00:00:00.000000Z"]]));
    assert_eq!(ok("drop table t"), "{\"ddl\":\"OK\"}");
}

#[test]
fn errors_name_what_is_wrong_and_where() {
    let (_data, server) = with_rows(1);
    for (sql, part) in [
        ("select * from nosuch", "nosuch"),
        ("select nosuch from t", "nosuch"),
        ("selec 1", "selec"),
        ("", "empty query"),
    ] {
        let reply = server.get(&format!("/exec?query={}", escaped(sql)));
        assert_eq!(reply.status, 400, "{sql}");
        let json = reply.json();
        assert_eq!(json["query"], sql);
        assert!(json["error"].as_str().unwrap().contains(part), "{json}");
        assert!(json["position"].is_u64(), "{json}");
    }
    assert_eq!(server.get("/exec?query=%zz").status, 400);
}

#[test]
fn exports_are_csv_files() {
    let (_data, server) = with_rows(2);
    let reply = server.get(&format!("/exp?query={}&filename=mine", escaped("select s, d, n from t order by n")));
    assert_eq!(reply.body, "\"s\",\"d\",\"n\"\r\n\"a b\",0.5,0\r\n\"a b\",1.5,1\r\n");
    let head = reply.head.to_ascii_lowercase();
    assert!(head.contains("content-type: text/csv") && head.contains("filename=\"mine.csv\""), "{head}");
    assert_eq!(server.get(&format!("/exp?query={}", escaped("drop table t"))).status, 400);
}

#[test]
fn tables_can_be_looked_for() {
    let (_data, server) = with_rows(1);
    assert_eq!(server.get("/chk?f=json&j=T").body, "{\"status\":\"Exists\"}");
    assert_eq!(server.get("/chk?j=nosuch").body, "Does not exist");
    assert_eq!(server.get("/chk?f=json").body, "table name missing");
}

#[test]
fn large_answers_arrive_whole() {
    let (_data, server) = with_rows(200_000);
    let reply = server.get(&format!("/exec?query={}", escaped("select n, d, timestamp from t order by timestamp")));
    assert!(reply.is_whole);
    let json = reply.json();
    assert_eq!(json["count"], 200_000);
    let rows = json["dataset"].as_array().unwrap();
    assert!(rows.iter().enumerate().all(|(i, row)| row[0].as_u64() == Some(i as u64)));
}

#[test]
fn a_query_stops_when_its_client_goes_away() {
    let (_data, server) = with_rows(20_000);
    // Joins to 8 x 10^12 rows: ends by itself never.
    let sql = "select count(*) from t a cross join t b cross join t c where a.n + b.n + c.n < 0";
    let mut socket = TcpStream::connect(&server.http).unwrap();
    write!(socket, "GET /exec?query={} HTTP/1.1\r\nHost: x\r\n\r\n", escaped(sql)).unwrap();
    server.wait_for_activity("cross join t c");
    drop(socket);
    let deadline = Instant::now() + PATIENCE;
    while server.runs("cross join t c") {
        assert!(Instant::now() < deadline, "the query runs on without its client");
    }
}

#[test]
fn a_query_stops_at_its_timeout() {
    let (_data, server) = with_rows(20_000);
    let sql = "select count(*) from t a cross join t b cross join t c where a.n + b.n + c.n < 0";
    let reply = server.get(&format!("/exec?query={}&timeout=100ms", escaped(sql)));
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.json()["error"].as_str().unwrap().contains("time"), "{}", reply.body);
}

#[test]
fn a_slow_reader_slows_only_its_own_query() {
    let (_data, server) = with_rows(200_000);
    let mut socket = TcpStream::connect(&server.http).unwrap();
    let sql = escaped("select * from t a cross join (select n from t limit 100) b");
    write!(socket, "GET /exec?query={sql} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut some = [0; 1000];
    socket.read_exact(&mut some).unwrap();
    // It waits for its reader now, with a gigabyte to go; others are served.
    assert_eq!(server.value("select count(*) from t"), 200_000);
}
