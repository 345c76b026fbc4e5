"""read_csv and read_parquet: files that others wrote, by path, pattern and URL."""

import datetime as dt
import functools
import http.server
import threading

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from server import SqlError

ROWS = 25_000
TABLE = pa.table({
    "Time": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(seconds=i) for i in range(ROWS)], pa.timestamp("us", tz="UTC")),
    "Symbol": pa.array([f"s{i % 7}" for i in range(ROWS)]).dictionary_encode(),
    "price": pa.array([None if i % 11 == 0 else i / 4 for i in range(ROWS)], pa.float64()),
    "n": pa.array(range(ROWS), pa.int32()),
    "flag": pa.array([i % 2 == 0 for i in range(ROWS)]),
    "note": pa.array([None if i % 5 else f"Ünï {i}" for i in range(ROWS)]),
    "small": pa.array([i % 100 for i in range(ROWS)], pa.uint8()),
})


def expected(rows=ROWS):
    prices = [i / 4 for i in range(rows) if i % 11]
    return [rows, sum(prices), sum(range(rows)), len(range(0, rows, 5)), sum(i % 100 for i in range(rows))]


SUMS = "SELECT count(), sum(price), sum(n), count(note), sum(small) FROM "


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "lz4", "gzip", "brotli"])
def test_parquet_of_pyarrow(server, tmp_path, codec):
    path = tmp_path / f"{codec}.parquet"
    pq.write_table(TABLE, path, compression=codec, row_group_size=4_000)
    assert server.rows(f"{SUMS} read_parquet('{path}')") == [expected()]
    columns = [c["name"] for c in server.exec(f"SELECT * FROM read_parquet('{path}') LIMIT 1")["columns"]]
    assert columns == TABLE.column_names
    assert server.rows(f"SELECT time, symbol, n FROM read_parquet('{path}') WHERE n >= 24998 ORDER BY n") == [
        ["2024-01-01T06:56:38.000000Z", "s1", 24998], ["2024-01-01T06:56:39.000000Z", "s2", 24999]]


def test_fields_of_structs(server, tmp_path):
    """In every clause; a struct that is NULL has NULL fields."""
    path = tmp_path / "structs.parquet"
    structs = pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None], pa.struct([("a", pa.int64()), ("b", pa.string())]))
    pq.write_table(pa.table({"id": [1, 2, 3], "s": structs}), path)
    file = f"read_parquet('{path}')"
    assert server.rows(f"SELECT id, s.a, t.s['b'] AS b FROM {file} t ORDER BY id") == [[1, 1, "x"], [2, None, "y"], [3, None, None]]
    assert server.rows(f"SELECT sum(s.a), max(s.b) FROM {file}") == [[1, "y"]]
    assert server.rows(f"SELECT s.b AS b, count(*) FROM {file} GROUP BY s.b ORDER BY b") == [["x", 1], ["y", 1], [None, 1]]
    assert server.rows(f"SELECT s.a + 1 AS x FROM {file} WHERE s.b > 'a' ORDER BY s.b DESC") == [[None], [2]]
    assert server.rows(f"SELECT id FROM {file} WHERE s.a IN (SELECT s.a FROM {file} WHERE id < 3)") == [[1]]


def test_conditions_reach_the_row_groups(server, tmp_path):
    path = tmp_path / "groups.parquet"
    pq.write_table(TABLE, path, row_group_size=1_000)
    plan = "\n".join(row[0] for row in server.rows(f"EXPLAIN SELECT price FROM read_parquet('{path}') WHERE n > 24990"))
    assert "DataSourceExec" in plan and "pruning_predicate" in plan and "projection=[price" in plan, plan
    assert "note" not in plan and "flag" not in plan, plan


@pytest.mark.parametrize("has_statistics", [True, False])
def test_nan_in_parquet_is_the_greatest_number(server, tmp_path, has_statistics):
    """Parquet statistics exclude NaN: neither conditions nor max(x) may use them."""
    path = tmp_path / "nan.parquet"
    pq.write_table(pa.table({"x": [1.0, 6.0, float("nan")], "k": [1, 2, 3]}), path, write_statistics=has_statistics)
    for condition, rows in [("x = 'NaN'", [3]), ("x > 6", [3]), ("x >= 6", [2, 3]), ("x <> 6", [1, 3]), ("x < 7", [1, 2]), ("k > 2", [3])]:
        assert server.rows(f"SELECT k FROM read_parquet('{path}') WHERE {condition} ORDER BY k") == [[k] for k in rows], condition
    assert server.rows(f"SELECT max(x)::varchar, min(x), count() FROM read_parquet('{path}')") == [["NaN", 1.0, 3]]


def test_the_slide_that_samples_a_file(server, tmp_path):
    pq.write_table(pa.table({"timestamp": TABLE["Time"].slice(0, 1800), "price": pa.array([float(i // 900) for i in range(1800)])}), tmp_path / "trades.parquet")
    query = "select timestamp, avg(price) from (read_parquet('trades.parquet') timestamp(timestamp)) sample by 15m;"
    rows = server.rows(query.replace("trades", f"{tmp_path}/trades"))
    assert rows == [["2024-01-01T00:00:00.000000Z", 0.0], ["2024-01-01T00:15:00.000000Z", 1.0]]


def test_patterns_lists_and_folders(server, tmp_path):
    for part in range(3):
        folder = tmp_path / f"day{part}"
        folder.mkdir()
        pq.write_table(TABLE.slice(part * 100, 100), folder / "a.parquet")
    assert server.value(f"SELECT sum(n) FROM read_parquet('{tmp_path}/*/a.parquet')") == sum(range(300))
    assert server.value(f"SELECT sum(n) FROM read_parquet('{tmp_path}/day[01]/*.parquet')") == sum(range(200))
    assert server.value(f"SELECT sum(n) FROM read_parquet('{tmp_path}/day1/[ab].p*')") == sum(range(100, 200))
    assert server.value(f"SELECT sum(n) FROM read_parquet(['{tmp_path}/day0/a.parquet', '{tmp_path}/day2/a.parquet'])") == sum(range(100)) + sum(range(200, 300))
    assert server.value(f"SELECT sum(n) FROM read_parquet('{tmp_path}/day1/')") == sum(range(100, 200))
    pq.write_table(TABLE.slice(700, 10), tmp_path / "100% #1?.parquet")
    assert server.value(f"SELECT sum(n) FROM read_parquet('{tmp_path}/*.parquet')") == sum(range(700, 710))
    assert server.value(f"SELECT count() FROM read_parquet('{tmp_path}/**/*.parquet')") == 310
    for path, message in [("*/nosuch.parquet", "no file matches"), ("[a", "invalid pattern"), ("x**/a", "invalid pattern")]:
        with pytest.raises(SqlError, match=message):
            server.rows(f"SELECT * FROM read_parquet('{tmp_path}/{path}')")
    assert server.rows(f"SELECT a.n, b.n FROM read_parquet('{tmp_path}/day0/a.parquet') a JOIN read_parquet('{tmp_path}/day0/*.parquet') b ON a.n = b.n WHERE a.n > 98") == [[99, 99]]


def test_csv_is_understood_without_being_told(server, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('Station;when;temp;wet;note\nOslo;2024-01-01T00:00:00;-3.5;true;x\nRome;2024-01-02T12:30:00;14;false;\n"A;B";;;;"two\nlines"\n')
    answer = server.exec(f"SELECT * FROM read_csv('{path}') ORDER BY station")
    names, types = zip(*[(c["name"], c["type"]) for c in answer["columns"]])
    assert names == ("Station", "when", "temp", "wet", "note")
    assert types[1].startswith("TIMESTAMP") and types[2:] == ("DOUBLE", "BOOLEAN", "VARCHAR")
    assert [row[0] for row in answer["dataset"]] == ["A;B", "Oslo", "Rome"]
    assert answer["dataset"][1][2:4] == [-3.5, True] and answer["dataset"][0][1:4] == [None] * 3
    assert answer["dataset"][0][4] == "two\nlines"
    assert server.value(f"SELECT sum(temp) FROM read_csv('{path}') WHERE when >= '2024-01-02'") == 14
    plain = tmp_path / "plain.csv"
    plain.write_text("1,2.5\n3,4.5\n")
    assert server.rows(f"SELECT * FROM read_csv('{plain}')") == [[1, 2.5], [3, 4.5]], "no header: the first line is a row"
    assert server.rows(f"SELECT * FROM read_csv('{plain}', header = true)") == [[3, 4.5]]
    odd = tmp_path / "odd.txt"
    odd.write_text("a|b\n'x|y'|\nz|2\n")
    assert server.rows(f"SELECT a, b FROM read_csv('{odd}', delim = '|', quote = '''')") == [["x|y", None], ["z", 2]]


def test_csv_of_pyarrow_fills_a_table(server, tmp_path, table):
    path = tmp_path / "t.csv"
    pa.csv.write_csv(TABLE.select(["price", "n", "note"]), path)
    server.exec(f"CREATE TABLE {table} (price DOUBLE, n LONG, note VARCHAR)")
    server.exec(f"INSERT INTO {table} SELECT price, n, note FROM read_csv('{path}')")
    assert server.rows(f"SELECT count(), sum(price), sum(n) FROM {table}") == [expected()[:3]]


def test_views_over_files(server, tmp_path, table):
    for name, rows in [("a", "t,v\n1,x\n2,y\n"), ("b", "t,w\n1,p\n2,q\n")]:
        (tmp_path / f"{name}.csv").write_text(rows)
    first, second = f"{table}_first", f"{table}_second"
    server.exec(f"CREATE VIEW {first} AS SELECT t, v FROM read_csv('{tmp_path}/a.csv')")
    server.exec(f"CREATE VIEW {second} AS SELECT t, w FROM read_csv('{tmp_path}/b.csv')")
    joined = f"SELECT c.v, a.v, b.w FROM read_csv('{tmp_path}/a.csv') c JOIN {first} a ON a.t = c.t JOIN {second} b ON b.t = a.t ORDER BY 1"
    assert server.rows(joined) == [["x", "x", "p"], ["y", "y", "q"]]
    server.exec(f"DROP VIEW {second}")
    server.exec(f"DROP VIEW {first}")


def test_http_urls(server, tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet", row_group_size=5_000)
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n")
    handler = functools.partial(Ranged, directory=str(tmp_path))
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{web.server_address[1]}"
        assert server.rows(f"{SUMS} read_parquet('{base}/t.parquet')") == [expected()]
        assert server.rows(f"SELECT a, b FROM read_csv('{base}/t.csv') ORDER BY a") == [[1, "x"], [2, "y"]]
        with pytest.raises(SqlError, match="t.nosuch"):
            server.rows(f"SELECT * FROM read_csv('{base}/t.nosuch')")
    finally:
        web.shutdown()


class Ranged(http.server.SimpleHTTPRequestHandler):
    """Serves parts of files, as web servers do."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        wanted = self.headers.get("Range")
        try:
            body = open(self.translate_path(self.path), "rb").read()
        except OSError:
            return self.send_error(404)
        status = 200
        if wanted:
            first, last = wanted.removeprefix("bytes=").split("-")
            whole, status = len(body), 206
            first = int(first) if first else whole - int(last)
            last = int(last) if last and wanted.split("=")[1][0] != "-" else whole - 1
            body = body[first:last + 1]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{min(last, whole - 1)}/{whole}")
        self.end_headers()
        self.wfile.write(body)


def test_what_cannot_be_read_is_said(server, servers, tmp_path):
    for sql, message in [(f"read_parquet('{tmp_path}/nosuch.parquet')", "nosuch"), ("read_csv(1)", "takes the path of a file"),
                         ("read_csv('ftp://x/y.csv')", "ftp:// cannot be read"), (f"read_csv('{tmp_path}/*.csv', colour = 'red')", "no option")]:
        with pytest.raises(SqlError, match=message):
            server.rows(f"SELECT * FROM {sql}")
    off = servers(env={"TIDALITE_QUERY_READS_FILES": "false"}).start()
    with pytest.raises(SqlError, match="turned off"):
        off.rows("SELECT * FROM read_csv('/etc/passwd')")
