"""The REST interface, in the shape that clients of QuestDB 9 read: members, order, types, headers, status codes."""

import json
import urllib.parse

import pytest
from server import SqlError

JSON = "application/json"


@pytest.fixture(scope="module")
def trades(server):
    name = "rest_trades"
    server.exec(f"create table {name} (sym symbol, price double, n long, s varchar, b boolean, ts timestamp) timestamp(ts) partition by day wal")
    server.exec(f"""insert into {name} values ('A', 1.5, 10, 'x"y', true, '2024-01-01T00:00:00.123456Z'), ('B', null, null, null, false, '2024-01-02T00:00:00Z')""")
    server.exec(f"insert into {name} (sym, b, ts) values ('C', false, '2024-01-03T00:00:00Z')")
    server.wait_count(name, 3)
    return name


def get(server, path, **parameters):
    status, headers, body = server.request("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
    return status, headers, body


COLUMNS = [{"name": n, "type": t} for n, t in
           [("sym", "SYMBOL"), ("price", "DOUBLE"), ("n", "LONG"), ("s", "VARCHAR"), ("b", "BOOLEAN"), ("ts", "TIMESTAMP")]]
DATASET = [["A", 1.5, 10, 'x"y', True, "2024-01-01T00:00:00.123456Z"], ["B", None, None, None, False, "2024-01-02T00:00:00.000000Z"],
           ["C", None, None, None, False, "2024-01-03T00:00:00.000000Z"]]


def test_exec_answer(server, trades):
    query = f"select * from {trades}"
    status, headers, body = get(server, "/exec", query=query)
    assert status == 200 and headers["content-type"].startswith(JSON)
    answer = json.loads(body)
    assert answer == {"query": query, "columns": COLUMNS, "timestamp": 5, "dataset": DATASET, "count": 3}
    assert list(answer) == ["query", "columns", "timestamp", "dataset", "count"]


def test_exec_by_post(server, trades):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    query = f"select count(*) from {trades}"
    status, _, body = server.request("POST", "/exec", urllib.parse.urlencode({"query": query}), form)
    assert status == 200 and json.loads(body)["dataset"] == [[3]]


def test_bare_table_name(server, trades):
    assert server.exec(trades)["dataset"] == DATASET


def test_position_of_the_designated_timestamp(server, trades):
    assert server.exec(f"select ts, sym from {trades}")["timestamp"] == 0
    assert server.exec(f"select sym, price from {trades}")["timestamp"] == -1


def test_an_empty_answer_keeps_its_columns(server, trades):
    answer = server.exec(f"select * from {trades} where sym = 'zzz'")
    assert (answer["columns"], answer["dataset"], answer["count"]) == (COLUMNS, [], 0)


def test_nm_leaves_the_names_out(server, trades):
    assert server.exec(f"select * from {trades}", nm="true") == {"dataset": DATASET, "count": 3}


@pytest.mark.parametrize("limit,picked", [("1", slice(0, 1)), ("2", slice(0, 2)), ("1,3", slice(0, 3)), ("2,3", slice(1, 3)), ("3,9", slice(2, 3)), ("100", slice(0, 3)),
                                          ("5,9", slice(3, 3))])
def test_limit(server, trades, limit, picked):
    """Rows lo to hi, both included and counted from 1: unlike LIMIT in SQL."""
    assert server.exec(f"select * from {trades}", limit=limit)["dataset"] == DATASET[picked]


def test_timings(server, trades):
    timings = server.exec(f"select * from {trades}", timings="true")["timings"]
    assert {"authentication", "compiler", "execute", "count"} <= set(timings)
    assert all(isinstance(v, int) and v >= 0 for v in timings.values())


def test_explain_member(server, trades):
    assert isinstance(server.exec(f"select * from {trades}", explain="true")["explain"], dict)


def test_explain_statement(server, trades):
    answer = server.exec(f"explain select * from {trades} where ts < '2024-01-02'")
    assert answer["count"] == len(answer["dataset"]) > 0


def test_ddl_and_dml_answers(server, table):
    assert server.exec(f"create table {table} (a int, ts timestamp) timestamp(ts) partition by day wal") == {"ddl": "OK"}
    assert server.exec(f"create table if not exists {table} (a int)") == {"ddl": "OK"}
    assert server.exec(f"insert into {table} values (1, '2024-01-01')") == {"dml": "OK"}
    assert server.exec(f"alter table {table} add column extra int") == {"ddl": "OK"}
    assert server.exec(f"alter table {table} rename column extra to extra2") == {"ddl": "OK"}
    assert server.exec(f"alter table {table} drop column extra2") == {"ddl": "OK"}
    assert server.exec(f"rename table {table} to {table}_2") == {"ddl": "OK"}
    assert server.exec(f"create table {table} as (select * from {table}_2) timestamp(ts) partition by month") == {"ddl": "OK"}
    assert server.count(table) == 1
    assert server.exec(f"truncate table {table}_2") == {"ddl": "OK"}
    assert server.exec(f"drop table {table}_2") == {"ddl": "OK"}
    assert server.exec(f"drop table if exists {table}_2") == {"ddl": "OK"}


# Text, the message must name, the character at which it points (None: anywhere).
ERRORS = [
    ("select * from nosuch", "nosuch", 14), ("select nosuch from {t}", "nosuch", 7), ("select * from {t} where", "", None),
    ("select * from {t} where price >", "", None), ("select nosuchfn(1)", "nosuchfn", 7), ("select 'unterminated", "", 7), ("selec * from {t}", "", None),
    ("create table {t} (a int)", "exists", None), ("create table rest_bad (a nosuchtype)", "nosuchtype", 25), ("create table rest_bad (a int) timestamp(a)", "a", None),
    ("drop table nosuch", "nosuch", None), ("insert into {t} (nosuch) values (1)", "nosuch", None), ("alter table {t} drop column nosuch", "nosuch", None),
    ("rename table nosuch to other", "nosuch", None), ("select 1; select 2", "", None),
    ("select 1/0", "division by zero", 8), ("select 5, 'abc'::int", "abc", 10), ("select 7, @x", "@x", 10), ("select 1, abs('a', 1)", "abs", 10),
    ("select price from {t} group by sym", "price", 7), ("select 1 a order by 77", "77", 20), ("select 1 limit 2, -3", "LIMIT", 9), ("select 1, 300::byte", "300", 10),
    ("select 1, 'a' ~ '('", "regular expression", 16), ("select 2, 1::nosuchtype", "nosuchtype", 13), ("select 1, sum('a'::varchar)", "sum", 10),
]


@pytest.mark.parametrize("query,word,position", ERRORS, ids=[e[0][:40].replace(" ", "-") for e in ERRORS])
def test_errors(server, trades, query, word, position):
    query = query.format(t=trades)
    status, headers, body = get(server, "/exec", query=query)
    assert status == 400 and headers["content-type"].startswith(JSON)
    answer = json.loads(body)
    assert set(answer) == {"query", "error", "position"} and answer["query"] == query
    assert word.format(t=trades).lower() in answer["error"].lower()
    assert isinstance(answer["position"], int) and 0 <= answer["position"] <= len(query)
    if position is not None:
        assert answer["position"] == position


def test_positions_count_characters_before_the_error(server):
    query = "select 'ünï', nosuchfn(1)"
    with pytest.raises(SqlError) as caught:
        server.exec(query)
    assert caught.value.answer["position"] in (query.index("nosuchfn"), len(query[: query.index("nosuchfn")].encode()))


def test_an_empty_query_is_an_error(server):
    for path in ("/exec", "/exec?query="):
        status, _, body = server.request("GET", path)
        assert "error" in json.loads(body)


def test_values_of_every_type(server, table):
    server.exec(f"""create table {table} (bo boolean, by byte, sh short, i int, l long, f float, d double, dt date, ts timestamp, tn timestamp_ns,
        v varchar, sy symbol, u uuid, ip ipv4, de decimal(10,3)) timestamp(ts) partition by day""")
    server.exec(f"""insert into {table} values (true, 1, 2, 3, 4, 1.5, 2.5, '2024-01-01', '2024-01-01T00:00:00.000001Z', '2024-01-01T00:00:00.000000001Z',
        'vär \\ / "q"', 'sym', '11111111-2222-3333-4444-555555555555', '1.2.3.4', 12.345)""")
    server.exec(f"insert into {table} (ts) values ('2024-01-02')")
    server.wait_count(table, 2)
    answer = server.exec(table)
    assert {c["name"]: c["type"] for c in answer["columns"]} == dict(
        bo="BOOLEAN", by="BYTE", sh="SHORT", i="INT", l="LONG", f="DOUBLE", d="DOUBLE", dt="DATE", ts="TIMESTAMP", tn="TIMESTAMP_NS", v="VARCHAR", sy="SYMBOL",
        u="UUID", ip="IPv4", de="DECIMAL(10,3)")
    names = [c["name"] for c in answer["columns"]]
    first, second = (dict(zip(names, row)) for row in answer["dataset"])
    assert first.pop("dt").startswith("2024-01-01")
    assert first == dict(bo=True, by=1, sh=2, i=3, l=4, f=1.5, d=2.5, ts="2024-01-01T00:00:00.000001Z", tn="2024-01-01T00:00:00.000000001Z", v='vär \\ / "q"',
                         sy="sym", u="11111111-2222-3333-4444-555555555555", ip="1.2.3.4", de="12.345")
    assert second == dict.fromkeys(names) | {"ts": "2024-01-02T00:00:00.000000Z"}


def test_numbers_survive_json(server):
    picked = ["1", "1.0", "1e300", "1e-7", "0.1", "123456789012345678", "9223372036854775807", "1e21", "-0.5", "true", "null"]
    row = server.rows("select " + ", ".join(picked))[0]
    assert row == [1, 1.0, 1e300, 1e-7, 0.1, 123456789012345678, 9223372036854775807, 1e21, -0.5, True, None]


def test_infinity_and_nan_are_valid_json(server):
    status, _, body = get(server, "/exec", query="select cast('NaN' as double), cast('Infinity' as double)")
    assert status == 200

    def never(word):
        raise AssertionError(f"{word} is not JSON")

    assert len(json.loads(body, parse_constant=never)["dataset"][0]) == 2


def test_export(server, trades):
    status, headers, body = get(server, "/exp", query=f"select * from {trades}")
    assert status == 200 and headers["content-type"].startswith("text/csv")
    assert "attachment" in headers["content-disposition"] and ".csv" in headers["content-disposition"]
    assert body.decode().splitlines() == ['"sym","price","n","s","b","ts"', '"A",1.5,10,"x""y",true,"2024-01-01T00:00:00.123456Z"',
                                          '"B",,,,false,"2024-01-02T00:00:00.000000Z"', '"C",,,,false,"2024-01-03T00:00:00.000000Z"']
    assert body.count(b"\r\n") == 4


def test_export_options(server, trades):
    assert len(get(server, "/exp", query=trades, limit="1")[2].decode().strip().splitlines()) == 2
    assert get(server, "/exp", query=f"select sym from {trades} where false")[2].decode().strip() == '"sym"'
    status, headers, body = get(server, "/exp", query="select * from nosuch")
    assert status == 400 and headers["content-type"].startswith(JSON) and json.loads(body)["position"] == 14


def test_export_of_many_rows_streams(server):
    body = server.export("select n from generate_series(1, 300000) n")
    assert body.decode().split()[1:] == [str(n) for n in range(1, 300_001)]


def test_check(server, trades):
    status, headers, body = get(server, "/chk", f="json", j=trades)
    assert (status, json.loads(body)) == (200, {"status": "Exists"}) and headers["content-type"].startswith(JSON)
    assert json.loads(get(server, "/chk", f="json", j="nosuch")[2]) == {"status": "Does not exist"}
    assert get(server, "/chk", j="nosuch")[2].decode().strip() == "Does not exist"
    assert get(server, "/chk", j=trades)[2].decode().strip() == "Exists"


def test_ping_and_settings(server):
    status, _, body = server.request("GET", "/ping")
    assert (status, body) == (204, b"")
    status, headers, body = server.request("GET", "/settings")
    config = json.loads(body)["config"]
    assert status == 200 and headers["content-type"].startswith(JSON)
    assert config["line.proto.support.versions"] == [1, 2, 3]
    assert config["cairo.max.file.name.length"] == 127
    assert "release.version" in config and "acl.enabled" not in config


def test_unknown_paths_and_methods(server):
    assert server.request("GET", "/nosuchpath")[0] == 404
    assert server.request("PUT", "/exec?query=select%201")[0] == 405
    assert server.request("GET", "/write")[0] == 405


def test_many_requests_over_one_connection(server, trades):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=30)
    for k in range(50):
        connection.request("POST", "/write", f"rest_kept_alive k={k}i\n")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (204, b"")
        connection.request("GET", "/exec?query=select%20nosuch" if k % 2 else f"/exec?query={trades}")
        answer = connection.getresponse()
        assert answer.status == (400 if k % 2 else 200) and answer.read()
    connection.close()
    server.wait_count("rest_kept_alive", 50)


@pytest.mark.parametrize("path", ["/write", "/api/v2/write", "/write?precision=n", "/api/v2/write?precision=ns&bucket=b&org=o"])
def test_write_paths(server, table, path):
    server.write_ok(f"{table},host=a v=1i 1704067200000000000\n", path=path)
    zeros = "000000000" if "precision" in path else "000000"
    assert server.rows(f"select v, timestamp from {table}") == [[1, f"2024-01-01T00:00:00.{zeros}Z"]]


@pytest.mark.parametrize("precision,stamp", [("u", 1704067200000001), ("us", 1704067200000001), ("ms", 1704067200001), ("s", 1704067201), ("m", 28401121), ("h", 473352)])
def test_precisions(server, table, precision, stamp):
    server.write_ok(f"{table} v=1i {stamp}\n", path=f"/write?precision={precision}")
    per = {"u": 1, "us": 1, "ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6}[precision]
    assert server.value(f"select cast(timestamp as long) from {table}") in (stamp * per, stamp * per * 1000)


def test_error_of_a_write(server, table):
    server.write_ok(f"{table} l=1i 1704067200000000000\n")
    status, headers, body = server.request("POST", "/write", f"{table} l=2i 1704067200000000000\n{table} l=1.5 1704067200000000000\n{table} l=3i 1704067200000000000\n")
    answer = json.loads(body)
    assert status == 400 and headers["content-type"].startswith(JSON)
    assert set(answer) == {"code", "message", "line", "errorId"}
    assert answer["code"] == "invalid" and answer["line"] == 2 and "l" in answer["message"]
    assert server.count(table) == 1


def test_a_write_is_seen_by_the_next_query(server, table):
    """Acknowledged means visible, on any connection."""
    for k in range(200):
        server.write_ok(f"{table} k={k}i {1704067200000000000 + k}\n")
        assert server.count(table) == k + 1
