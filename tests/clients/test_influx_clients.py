"""The Python clients of InfluxDB 1, 2 and 3, and the responses to requests other than writes.

Values are those given to the client; the forms of answers are from InfluxDB's API reference.
"""

import json
import math
import urllib.parse
import warnings
from pathlib import Path

import influxdb
import influxdb_client
import influxdb_client_3
import pytest
from influxdb_client.client.exceptions import InfluxDBError
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client_3.exceptions import InfluxDBPartialWriteError
from server import nanos

T0 = 1704067200 * 10**9
#: Names as Telegraf, SNMP and Windows counters have them.
ODD = ["usage.idle", "read-bytes", "a/b", "%_Processor_Time", "latency(ms)", "net:eth0", "7z", "a+b*c", "it's", 'quo"te', "back\\slash", "comma,and=equals", "two words"]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def only_row(server, table):
    answer = server.exec(f"select * from {quoted(table)}")
    assert answer["count"] == 1, answer
    return dict(zip([c["name"] for c in answer["columns"]], answer["dataset"][0]))


@pytest.fixture
def v1(server):
    with influxdb.InfluxDBClient("127.0.0.1", server.http_port, "user", "secret", "metrics") as client:
        yield client


@pytest.fixture
def v2(server):
    with influxdb_client.InfluxDBClient(f"http://127.0.0.1:{server.http_port}", token="any", org="org") as client:
        yield client


def v3(server, **options):
    return influxdb_client_3.InfluxDBClient3(host=f"http://127.0.0.1:{server.http_port}", token="any", database="db", write_client_options=influxdb_client_3.write_client_options(
        write_options=influxdb_client_3.WriteOptions(write_type=influxdb_client_3.WriteType.synchronous, **options)))


def test_v1_starts_and_writes(server, table, v1):
    assert v1.ping().startswith("v")
    v1.create_database("metrics")
    v1.create_database('odd "name"')
    names = [entry["name"] for entry in v1.get_list_database()]
    assert {"metrics", 'odd "name"'} <= set(names)
    fields = {"f": 1.5, "i": 2**63 - 1, "yes": True, "no": False, "text": 'quo"te, back\\slash', "nan": math.nan, "inf": math.inf}
    assert v1.write_points([{"measurement": table, "tags": {"host": "a b,c=d", "empty": "", "path": "C:\\dir\\"}, "time": T0, "fields": fields}])
    expected = {**fields, "host": "a b,c=d", "path": "C:\\dir\\", "nan": None, "inf": None, "timestamp": "2024-01-01T00:00:00.000000Z"}
    assert only_row(server, table) == expected
    assert server.value(f"select count(*) from {table} where inf > 1e308") == 1
    types = server.types(table)
    assert (types["nan"], types["timestamp"], types["i"]) == ("DOUBLE", "TIMESTAMP", "LONG")
    assert {"name": table} in v1.get_list_measurements()
    with pytest.raises(influxdb.exceptions.InfluxDBClientError) as refused:
        v1.query(f"select * from {table}")
    assert refused.value.code == 400 and "InfluxQL" in refused.value.content


@pytest.mark.parametrize("precision,unit", [("n", 1), ("u", 10**3), ("ms", 10**6), ("s", 10**9), ("m", 60 * 10**9), ("h", 3600 * 10**9)])
def test_v1_precisions(server, table, v1, precision, unit):
    v1.write_points([{"measurement": table, "time": T0 // unit, "fields": {"f": 1.0}}], time_precision=precision)
    assert nanos(only_row(server, table)["timestamp"]) == T0
    assert server.types(table)["timestamp"] == ("TIMESTAMP_NS" if precision == "n" else "TIMESTAMP")


def test_v1_errors_name_the_line(server, table, v1):
    v1.write_points([{"measurement": table, "time": T0, "fields": {"f": 1.0}}])
    with pytest.raises(influxdb.exceptions.InfluxDBClientError) as refused:
        v1.write_points([{"measurement": table, "time": T0, "fields": {"f": 1.0}}, {"measurement": table, "time": T0, "fields": {"f": "text"}}])
    error = json.loads(refused.value.content)
    assert refused.value.code == 400 and error["line"] == 2 and table in error["error"] and '"f"' in error["error"]


def test_v2_starts_and_writes(server, table, v2):
    assert v2.ping() and v2.version().startswith("v") and v2.build() == "OSS"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert v2.health().status == "pass" and v2.ready().status == "ready"
    bucket = v2.buckets_api().find_bucket_by_name("metrics")
    assert bucket.name == "metrics" and len(bucket.id) == 16
    assert v2.organizations_api().find_organizations(org="org")[0].name == "org"
    point = influxdb_client.Point(table).tag("host", "a b,c=d").tag("instance", "a\\private$").tag("lines", "one\ntwo")
    point = point.field("text", 'one\ntwo "three" \\four\\').field("i", 5).field("f", 0.1).field("yes", True).field("nan", math.nan).time(T0)
    v2.write_api(write_options=SYNCHRONOUS).write("metrics", "org", point)
    row = only_row(server, table)
    # The client writes a newline of a tag as a backslash and an n, and leaves NaN out.
    assert row == {"host": "a b,c=d", "instance": "a\\private$", "lines": "one\\ntwo", "text": 'one\ntwo "three" \\four\\', "i": 5, "f": 0.1, "yes": True,
                   "timestamp": "2024-01-01T00:00:00.000000000Z"}


@pytest.mark.parametrize("precision,unit", [("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9)])
def test_v2_precisions(server, table, v2, precision, unit):
    record = influxdb_client.Point(table).field("f", 1.0).time(T0 // unit, write_precision=precision)
    v2.write_api(write_options=SYNCHRONOUS).write("b", "o", record, write_precision=precision)
    assert nanos(only_row(server, table)["timestamp"]) == T0


def test_v2_odd_names(server, table, v2):
    for number, name in enumerate(ODD):
        point = influxdb_client.Point(f"{table} {name}").tag(f"tag {name}", name).field(name, number).field("t", name).time(T0)
        v2.write_api(write_options=SYNCHRONOUS).write("b", "o", point)
        row = only_row(server, f"{table} {name}")
        assert row == {f"tag {name}": name, name: number, "t": name, "timestamp": "2024-01-01T00:00:00.000000000Z"}


def test_odd_names_in_statements(server, table):
    """Tables and columns with unusual names work in queries and in statements that write."""
    for number, name in enumerate(ODD):
        other, tag, key, column = (quoted(text) for text in (f"{table} {name}", name, f"{name} 2", f"{name} 3"))
        escaped = name.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")
        server.write_ok("".join(f"{table}\\ {escaped},{escaped}=x{k % 2} {escaped}\\ 2={k}i,{escaped}\\ 3={k}.5 {T0 + k * 10**9}\n" for k in range(4)))
        assert server.rows(f"select {tag}, sum({key}), max({column}) from {other} where {key} > 0 group by {tag} order by {tag}") == [["x0", 2, 2.5], ["x1", 4, 3.5]]
        assert server.rows(f"select t.{tag} from {other} t where t.{column} = 1.5") == [["x1"]]
        assert server.rows(f"select {key} from {other} latest on timestamp partition by {tag} order by 1") == [[2], [3]]
        assert server.rows(f"select timestamp, sum({key}) from {other} sample by 2s")[0][1] == 1
        assert server.rows(f"select a.{key} from {other} a join {other} b using ({tag}) where b.{key} = 3 order by 1") == [[1], [3]]
        assert server.rows(f"select {key}, lag({key}) over (partition by {tag} order by timestamp) from {other} order by 1")[3] == [3, 1]
        server.exec(f"update {other} set {key} = {key} + 10 where {tag} = 'x0'")
        server.exec(f"delete from {other} where {column} = 3.5")
        assert server.value(f"select sum({key}) from {other}") == 10 + 12 + 1
        copy = quoted(f"{table} copy {name}")
        server.exec(f"create table {copy} as (select * from {other})")
        server.exec(f"alter table {copy} rename column {key} to {quoted(name + ' 4')}")
        assert server.value(f"select sum({quoted(name + ' 4')}) from {copy}") == 23
        assert server.export_rows(f"select {tag} from {copy} limit 1") == [[name], ["x0"]]
        server.exec(f"drop table {copy}")


def test_v3_writes(server, table):
    with v3(server) as client:
        assert client.get_server_version().startswith("v")
        client.write(influxdb_client_3.Point(table).tag("host", "a").field("f", 1.5).field("i", 7).time(T0))
    assert only_row(server, table) == {"host": "a", "f": 1.5, "i": 7, "timestamp": "2024-01-01T00:00:00.000000000Z"}
    with v3(server, no_sync=True, use_v2_api=False) as client:
        client.write(influxdb_client_3.Point(table).tag("host", "b").field("f", 2.5).time(T0))
    assert server.value(f"select count(*) from {table}") == 2


def test_v3_partial_writes(server, table):
    lines = [f"{table},host=a f=1.5 1", f"{table},host=b f=oops 2", f"{table},host=c f=2.5 3", f'{table},host=d f="text" 4', f"{table},host=e f=3i 5", f"{table},host=f f=4.5,g=1i 6"]
    server.write_ok(f"{table},host=z f=0.5 0\n")
    with v3(server, use_v2_api=False) as client:
        with pytest.raises(InfluxDBPartialWriteError) as refused:
            client.write("\n".join(lines))
    errors = refused.value.line_errors
    assert [(e.line_number, e.original_line) for e in errors] == [(2, lines[1]), (4, lines[3])]
    assert all('"f"' in e.error_message and table in e.error_message for e in errors)
    assert server.rows(f"select host from {table} order by host") == [["a"], ["c"], ["e"], ["f"], ["z"]]
    with v3(server, use_v2_api=False, accept_partial=False) as client:
        with pytest.raises(InfluxDBPartialWriteError) as refused:
            client.write("\n".join(lines))
    assert [(e.line_number, e.original_line) for e in refused.value.line_errors] == [(2, lines[1])]
    assert server.count(table) == 5


def write_v3(server, lines, parameters=""):
    status, _, body = server.request("POST", f"/api/v3/write_lp?db=x{parameters}", lines)
    return status, json.loads(body) if body else None


def test_v3_parameters(server, table):
    for k, (time, precision) in enumerate([("1704067200", ""), ("1704067200000", "&precision=auto"), ("1704067200000000", "&precision=microsecond"),
                                           ("1704067200000000000", "&precision=nanosecond"), ("1704067200", "&precision=second"), ("1704067200000", "&precision=millisecond")]):
        assert write_v3(server, f"{table}_{k} v=1i {time}\n", precision) == (204, None)
        assert nanos(only_row(server, f"{table}_{k}")["timestamp"]) == T0
        assert server.types(f"{table}_{k}")["timestamp"] == ("TIMESTAMP_NS" if precision.endswith("nanosecond") else "TIMESTAMP")
    status, body = write_v3(server, f"{table} v=1i 1\n", "&accept_partial=maybe")
    assert status == 400 and "accept_partial" in body["error"]
    status, body = write_v3(server, f"{table} v=1i 1\n", "&precision=fortnight")
    assert status == 400 and "fortnight" in body["error"]
    # A request without a valid line creates no table.
    status, body = write_v3(server, f"{table} v=x\n{table} w\n")
    assert status == 400 and [entry["line_number"] for entry in body["data"]] == [1, 2] and not server.has_table(table)


def test_v3_keeps_rows_before_and_behind_every_kind_of_error(server, table):
    server.exec(f"create table {table} (v short, s symbol, timestamp timestamp) timestamp(timestamp) partition by day")
    good = [f"{table},s=x v={k}i {T0 + k * 1000}" for k in range(200)]
    bad = [f"{table} v=100000i {T0}", f"{table} v=1.5 {T0}", f"{table} v=\"x\" {T0}", f"{table} v", f"{table} s=\"open {T0}", f"{table} v=1i,timestamp=t", f"{table},s=\xff v=1i {T0}"]
    lines = [line for k, line in enumerate(good) for line in ([bad[k // 25 % len(bad)], line] if k % 25 == 7 else [line])]
    status, body = write_v3(server, "\n".join(lines).encode("latin-1"))
    assert status == 400
    assert [lines[entry["line_number"] - 1] for entry in body["data"]] == [bad[k % len(bad)] for k in range(8)]
    assert server.rows(f"select count(*), sum(v) from {table}") == [[200, sum(range(200))]]
    # Requests with the same key get the same response and are written once.
    headers = {"Idempotency-Key": table}
    answers = {server.request("POST", "/api/v3/write_lp?db=x", f"{table} v=1i 1\n{table} v=x 2\n", headers)[::2] for _ in range(3)}
    assert len(answers) == 1 and server.count(table) == 201


def test_refusals_have_the_shape_of_influxdb(server):
    for path in ("/api/v2/query?org=o", "/api/v2/delete", "/api/v3/query_sql", "/api/v2/buckets", "/api/v2/tasks"):
        status, headers, body = server.request("POST", path, b"{}")
        assert status in (404, 405) and (status == 405 or headers["content-type"] == "application/json"), body
        assert status == 405 or set(json.loads(body)) == {"code", "message"}
    for text in ("select * from cpu", "DROP DATABASE x", "CREATE DATABASE x WITH DURATION 1d", "", "SHOW TAG KEYS"):
        status, _, body = server.request("POST", "/query?db=x", urllib.parse.urlencode({"q": text}), {"Content-Type": "application/x-www-form-urlencoded"})
        assert status == 400 and set(json.loads(body)) == {"error"}
    status, _, body = server.request("GET", "/health")
    assert status == 200 and json.loads(body)["status"] == "pass"
    status, _, body = server.request("GET", "/write/v4", headers={"Upgrade": "websocket", "Connection": "Upgrade"})
    assert status == 404 and b"WebSocket" in body


@pytest.mark.parametrize("kind", ["user", "token"])
def test_credentials_of_every_version(servers, table, kind):
    server = servers(env={"TIDALITE_HTTP_USER": "me", "TIDALITE_HTTP_PASSWORD": "s:cret", "TIDALITE_HTTP_TOKENS": "tok"}).start()
    line, user = f"{table} v=1i {T0}\n".encode(), urllib.parse.urlencode({"u": "me", "p": "s:cret"})
    good = [("/write?db=x&" + user, {}), ("/api/v2/write", {"Authorization": "Token me:s:cret"})] if kind == "user" else [
        ("/api/v2/write?bucket=b&org=o", {"Authorization": "Token tok"}), ("/api/v3/write_lp?db=x", {"Authorization": "Bearer tok"})]
    bad = [("/write", {}), ("/write?u=me&p=wrong", {}), ("/api/v2/write", {"Authorization": "Token wrong"}), ("/api/v2/write?" + user, {}), ("/exec?query=select+1&" + user, {})]
    for path, headers in good:
        assert server.request("POST", path, line, headers)[0] == 204, path
    for path, headers in bad:
        assert server.request("POST", path, line, headers)[0] == 401, path
    assert server.request("GET", "/health")[0] == 200
    if kind == "user":
        with influxdb.InfluxDBClient("127.0.0.1", server.http_port, "me", "s:cret", "x") as client:
            client.create_database("x")
            client.write_points([{"measurement": table, "fields": {"v": 1}}])
    else:
        with influxdb_client.InfluxDBClient(f"http://127.0.0.1:{server.http_port}", token="tok", org="o") as client:
            client.write_api(write_options=SYNCHRONOUS).write("b", "o", f"{table} v=2i {T0}")
        with influxdb_client.InfluxDBClient(f"http://127.0.0.1:{server.http_port}", token="wrong", org="o") as client:
            with pytest.raises(InfluxDBError):
                client.write_api(write_options=SYNCHRONOUS).write("b", "o", f"{table} v=2i {T0}")


def test_the_type_of_new_tables_can_be_set(servers, table):
    for value, expected in [("TIMESTAMP_NS", "TIMESTAMP_NS"), ("timestamp", "TIMESTAMP"), ("auto", "TIMESTAMP")]:
        server = servers(env={"TIDALITE_LINE_TIMESTAMP_TYPE": value}).start()
        server.write_ok(f"{table} v=1i {T0 + 1999}\n")
        assert server.types(table)["timestamp"] == expected
        server.write_ok(f"{table}_n v=1i {T0}n\n")
        assert server.types(f"{table}_n")["timestamp"] == ("TIMESTAMP" if value == "timestamp" else "TIMESTAMP_NS")
        with server.tcp() as s:
            s.sendall(f"{table}_tcp v=1i {T0 + 1999}\n".encode())
            server.wait_count(f"{table}_tcp", 1)
        assert server.types(f"{table}_tcp")["timestamp"] == expected
        assert nanos(server.value(f"select timestamp from {table}_tcp")) - T0 == (1999 if expected == "TIMESTAMP_NS" else 1000)


def test_times_given_as_fields(server, table):
    server.write_ok(f"{table} v=1i,timestamp={T0 // 1000}t\n{table} v=2i {T0 + 10**9}\n{table} v=3i,timestamp={T0 // 1000 + 2 * 10**6}t {T0}\n")
    assert server.rows(f"select v, timestamp from {table} order by timestamp") == [[k, f"2024-01-01T00:00:0{k - 1}.000000Z"] for k in (1, 2, 3)]
    server.write_ok(f"{table} v=4i,timestamp=1704067203i\n", path="/write?precision=s")
    assert server.rows(f"select timestamp from {table} where v = 4") == [["2024-01-01T00:00:03.000000Z"]]
    assert server.exec(f"select * from {table}")["timestamp"] >= 0


def sent_by(name):
    return (Path(__file__).parent / "senders" / f"{name}.lines").read_bytes()


#: The names of senders/telegraf.lines. Telegraf writes tabs and newlines of names as a backslash and a letter.
TELEGRAF = ["cpu", "disk.io", "net-stat", "a/b", "%util", "lat(ms)", "eth:0", "7z", "with space", "com,ma", "eq=ual", "back\\slash", "tab\tname", "new\nline", 'quo"te', "ünï"]


def test_lines_of_telegraf(servers):
    server = servers().start()
    server.write_ok(sent_by("telegraf"))
    for number, name in enumerate(TELEGRAF):
        written = name.replace("\t", "\\t").replace("\n", "\\n")
        expected = {written: written, "host": "h", "instance": "a\\private$", f"{written}_f": number + 0.5, f"{written}_i": number, f"{written}_u": number,
                    f"{written}_b": number % 2 == 0, f"{written}_s": f'one\ntwo "x" \\ {name}', "timestamp": f"2024-01-01T00:00:{number:02}.000000Z"}
        assert only_row(server, written) == expected
    assert server.value("select count(*) from tables()") == len(TELEGRAF)


def test_lines_of_opentelemetry(servers):
    server = servers().start()
    server.write_ok(sent_by("opentelemetry"), path="/write?precision=ns")
    common = {"k8s.pod.name": "pod\\a", "otel.library.name": "scope.v1", "service.name": "check out/1", "timestamp": "2024-01-01T00:00:00.123456789Z"}
    assert only_row(server, "system.cpu.utilization") == {**common, "cpu.state": "user", "path": "C:\\dir", "gauge": 0.25}
    assert only_row(server, "http.server.requests") == {**common, "http.route": "/a,b=c d", "counter": 42, "start_time_unix_nano": T0 + 123456789}
    assert only_row(server, "http.server.duration") == {**common, "+Inf": 5, "1": 1, "2.5": 3, "count": 5, "sum": 12.5}
    assert server.rows('select le, "http.server.duration_bucket" from prometheus where le is not null order by 2') == [["1", 1], ["2.5", 3], ["+Inf", 5]]
    assert server.value('select "http.server.requests" from prometheus where "http.route" = \'/a,b=c d\'') == 42
    # The encoder writes a newline of a string as a backslash and an n.
    assert server.value("select body from logs where body is not null") == 'stack trace:\\n\\tat a.b(c.java:1)\\n"quoted" \\ back'
    assert json.loads(server.value("select attributes from spans")) == {"http.url": 'http://x/y?z="1"'}
    assert server.value('select "span.name" from spans') == "GET /a?b=c"
    assert server.value('select "event.name" from logs where span_id is not null') == "retry"
