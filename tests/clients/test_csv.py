"""Real-world CSV: notations, encodings, headers, options, through `tidalite import`, `/imp` and COPY.

Expected values are written out, or are those of the pandas frame that a file was made of.
"""

import csv
import gzip
import io
import json
import random
import urllib.parse

import pandas as pd
import psycopg
import pyarrow as pa
import pytest
from test_import import ask, load, run


def zstd(data):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


def imp(server, table, body, status=200, headers=None, **parameters):
    """The answer of /imp as JSON."""
    query = urllib.parse.urlencode({"name": table, "fmt": "json", **parameters})
    got, _, answer = server.request("POST", f"/imp?{query}", body, headers)
    assert got == status, answer
    return json.loads(answer)


def rows(server, query):
    return server.rows(query)


def types(answer):
    return {c["name"]: c["type"] for c in answer["columns"]}


# A header names the table's columns.


def test_a_first_row_of_text_into_a_table_of_text_is_a_row(server, table):
    server.exec(f"create table {table} (name varchar, city varchar)")
    imp(server, table, b"Ann,Rome\nBob,Oslo\n")
    imp(server, table, b"Eve,Bonn\n")
    imp(server, table, b"city,name\nParis,Zoe\n")
    assert rows(server, f"select name, city from {table} order by name") == [["Ann", "Rome"], ["Bob", "Oslo"], ["Eve", "Bonn"], ["Zoe", "Paris"]]
    # No columns out of data.
    answer = imp(server, table, b"Ann,Rome,x\n", 400)
    assert "has 2 columns" in answer["status"] and "header" in answer["status"]
    assert len(server.types(table)) == 2
    imp(server, table, b"name,city,age\nMax,Kiel,5\n")
    assert server.types(table)["age"] == "LONG"
    assert server.count(table) == 5


def test_a_file_without_rows_makes_nothing(server, table, tmp_path):
    for body in (b"a,b\n", b"a,b", b"\xef\xbb\xbfa,b\r\n", b"# only\na,b\n"):
        answer = imp(server, table, body)
        assert (answer["rowsImported"], server.has_table(table)) == (0, False), body
    imp(server, table, b"a,b\n1,2\n")
    assert "no rows to overwrite" in imp(server, table, b"a,b\n", 400, overwrite="true")["status"]
    assert server.count(table) == 1
    file = tmp_path / "t.csv"
    file.write_bytes(b"a,b\n")
    assert load(file, "--data", tmp_path / "data")["rows"] == 0
    assert ask(tmp_path / "data", "show tables")[1:] == []


# Requested options are applied or rejected, never ignored.


def test_options_are_honoured_or_refused(server, table):
    form = (b'--x\r\nContent-Disposition: form-data; name="schema"\r\n\r\n%s\r\n--x\r\nContent-Disposition: form-data; name="data"; filename="f.csv"\r\n%s\r\n%s\r\n--x--\r\n')
    post = lambda schema, data, kind=b"": server.request("POST", f"/imp?name={table}&fmt=json&overwrite=true", form % (schema, kind, data), {"Content-Type": "multipart/form-data; boundary=x"})  # noqa: E731
    status, _, answer = post(b'[{"name":"ts","type":"TIMESTAMP","pattern":"dd/MM/yyyy HH:mm:ss"},{"name":"v","type":"DOUBLE"}]', b"ts,v\n01/02/2024 03:04:05,1\n")
    assert status == 200, answer
    assert rows(server, f"select ts, v from {table}") == [["2024-02-01T03:04:05.000000Z", 1.0]]
    status, _, answer = post(b'[{"name":"ts","type":"TIMESTAMP","pattern":"Q"}]', b"ts\n1\n")
    assert status == 400 and b"Q" in answer
    status, _, answer = post(b'[{"name":"ts","type":"TIMESTAMP","colour":"red"}]', b"ts\n1\n")
    assert status == 400 and b"colour" in answer
    status, _, answer = post(b'[{"name":"v","type":"VARCHAR","pattern":"x"}]', b"v\n1\n")
    assert status == 400 and b"takes no format" in answer
    status, _, answer = post(b"[]", "s,v\ncafé,1\n".encode("latin-1"), b"Content-Type: text/csv; charset=iso-8859-1\r\n")
    assert status == 200 and rows(server, f"select s from {table}") == [["café"]]
    for name, value in [("colour", "red"), ("dateOrder", "ymd"), ("encoding", "koi8-r"), ("compression", "xz"), ("skip", "x"), ("decimal", ";"), ("thousands", "x"),
                        ("timestampFormat", "HH"), ("header", "maybe"), ("onError", "cry"), ("maxRejects", "-1"), ("delimiter", "ab"), ("quote", "ab"), ("partitionBy", "DECADE")]:
        answer = imp(server, table, b"a,b\n1,2\n", 400, **{name: value})
        assert f"parameter {name}" in answer["status"], answer
    imp(server, f"{table}_p", b"ts,v\n2024-01-01,1\n", partitionBy="MONTH")
    assert "is partitioned by MONTH, not DAY" in imp(server, f"{table}_p", b"ts,v\n2024-01-01,1\n", 400, partitionBy="DAY")["status"]


def test_rejects_are_listed_and_limited(server, table):
    body = b"ts,v,s\n2024-01-01,1,a\n2024-01-02,x,b\n2024-01-03,3\n2024-01-04,y,d\n"
    types_ = {"columns": "v LONG"}
    answer = imp(server, table, body, onError="skip", **types_)
    assert (answer["rowsImported"], answer["rowsRejected"]) == (1, 3)
    assert [(r["line"], r["column"], r["record"]) for r in answer["rejected"]] == [(3, "v", "2024-01-02,x,b\n"), (4, None, "2024-01-03,3\n"), (5, "v", "2024-01-04,y,d\n")]
    assert answer["rejected"][0]["reason"] == 'invalid input syntax for type LONG: "x"'
    answer = imp(server, f"{table}_2", body, 400, onError="skip", maxRejects="2", **types_)
    assert "max_rejects" in answer["status"] and answer["line"] == 5 and not server.has_table(f"{table}_2")
    assert imp(server, f"{table}_2", body, onError="skip", maxRejects="3", **types_)["rowsImported"] == 1
    status, _, text = server.request("POST", f"/imp?name={table}_3&onError=skip&columns=v%20LONG", body)
    assert status == 200 and b'line 3, position 12, column "v": invalid input syntax for type LONG: "x": 2024-01-02,x,b\n' in text


# Bytes.


TEXT = "ts,name,v\n2024-01-01T00:00:00Z,Zoë €,1.5\n2024-01-02T00:00:00Z,\"a\nb\",2\n2024-01-03T00:00:00Z,,\n"
ROWS = [["2024-01-01T00:00:00.000000Z", "Zoë €", 1.5], ["2024-01-02T00:00:00.000000Z", "a\nb", 2.0], ["2024-01-03T00:00:00.000000Z", None, None]]
FORMS = {
    "utf-8": TEXT.encode(),
    "utf-8 with a mark": TEXT.encode("utf-8-sig"),
    "utf-16 with a mark": TEXT.encode("utf-16"),
    "utf-16 big endian with a mark": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-16le": TEXT.encode("utf-16-le"),
    "utf-16be": TEXT.encode("utf-16-be"),
    "gzip": gzip.compress(TEXT.encode()),
    "zstd": zstd(TEXT.encode()),
    "gzip of utf-16": gzip.compress(TEXT.encode("utf-16")),
    "crlf": TEXT.replace("\n", "\r\n").replace("a\r\nb", "a\nb").encode(),
    "cr": TEXT.replace("\n", "\r").replace("a\rb", "a\nb").encode(),
    "comments": b"# one\n# two, three\n" + TEXT.encode(),
    "a preamble": b"Report of all things\nAccount: 5\n\n" + TEXT.encode(),
    "excel": b"sep=,\r\n" + TEXT.encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_text(server, table, tmp_path, form):
    query = f"select ts, name, v from {table} order by ts"
    imp(server, table, FORMS[form])
    assert rows(server, query) == ROWS
    file = tmp_path / f"{table}_f.csv"
    file.write_bytes(FORMS[form])
    load(file, "--data", tmp_path / "data", "--threads", "1")
    assert ask(tmp_path / "data", f"select name from {table}_f where v > 0 order by ts")[1:] == [["Zoë €"], ["a\nb"]]
    assert ask(tmp_path / "data", f"select count(*), sum(v) from {table}_f")[1:] == [["3", "3.5"]]
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as c:
        c.execute(f"create table {table}_c (ts timestamp, name varchar, v double) timestamp(ts) partition by day")
        c.execute(f"copy {table}_c from '{file}' (format csv)")
    assert rows(server, f"select ts, name, v from {table}_c order by ts") == ROWS


def test_other_encodings_are_said_or_refused_at_their_place(server, table):
    latin = "s,v\ncafé,1\n".encode("latin-1")
    answer = imp(server, table, latin, 400)
    assert (answer["status"].split(";")[0], answer["line"]) == ("line 2, position 4: the text is not UTF-8", 2)
    assert not server.has_table(table)
    imp(server, table, latin, encoding="latin1")
    imp(server, table, "s,v\n€,2\n".encode("cp1252"), encoding="windows-1252")
    assert rows(server, f"select s from {table} order by v") == [["café"], ["€"]]
    for binary, what in ((b"PK\x03\x04abc", "ZIP"), (b"PAR1abc", "Parquet"), (b"\xfd7zXZ\0abc", "xz")):
        assert what in imp(server, table, binary, 400)["status"]


def test_a_first_record_of_many_megabytes(server, table, tmp_path):
    long = "x" * (6 << 20)
    for name, text in (("head", f'a,b\n"{long}",1\n'), ("row", f'"{long}",1\nshort,2\n')):
        imp(server, f"{table}_{name}", text.encode(), columns="a VARCHAR, b LONG")
        assert server.value(f"select max(length(a)) from {table}_{name}") == 6 << 20
        file = tmp_path / f"{name}.csv"
        file.write_text(text)
        load(file, "--data", tmp_path / "data", "--columns", "a VARCHAR, b LONG")
        assert ask(tmp_path / "data", f"select max(length(a)), min(b) from {name}")[1:] == [[str(6 << 20), "1"]]


# Values.


AT = "2024-01-31T15:04:05.000000Z"
TIMES = [
    ("1706713445", AT), ("1706713445000", AT), ("1706713445000000", AT), ("1706713445000000000", AT), ("1706713445.5", "2024-01-31T15:04:05.500000Z"),
    ("2024-01-31 15:04:05 UTC", AT), ("2024-01-31 16:04:05 Europe/Berlin", AT), ("2024-01-31 16:04:05+01", AT), ("2024-01-31T15:04:05Z", AT),
    ("01/31/2024 3:04:05 PM", AT), ("31/01/2024 15:04:05", AT), ("31.01.2024 15:04:05", AT), ("20240131 150405123", "2024-01-31T15:04:05.123000Z"),
    ("20240131;150405", AT), ("2024.01.31 15:04:05", AT), ("20240131150405", AT), ("31-Jan-2024 15:04:05", AT), ("Wed, 31 Jan 2024 15:04:05 GMT", AT),
]


@pytest.mark.parametrize("text, expected", TIMES)
def test_times_are_read_by_every_way_in(server, table, tmp_path, text, expected):
    body = f'ts,v\n"{text}",1\n'.encode()
    imp(server, table, body, timestamp="ts")
    # TIMESTAMP_MS and TIMESTAMP_NS for milli- and nanoseconds.
    assert rows(server, f"select ts::timestamp from {table}") == [[expected]]
    server.exec(f"create table {table}_t (ts timestamp, v long) timestamp(ts) partition by day")
    imp(server, f"{table}_t", body)
    file = tmp_path / "f.csv"
    file.write_bytes(body)
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as c:
        c.execute(f"copy {table}_t from '{file}' (format csv, header)")
        with c.cursor().copy(f"copy {table}_t from stdin (format csv)") as copy:
            copy.write(body.split(b"\n")[1] + b"\n")
    assert rows(server, f"select ts, count(*) from {table}_t group by ts") == [[expected, 3]]


def test_what_has_two_meanings_is_refused_with_a_hint(server, table):
    body = b"ts,v\n01/02/2024,1\n03/04/2024,2\n"
    assert "dateOrder" in imp(server, table, body, 400)["status"]
    imp(server, table, body, dateOrder="mdy")
    assert server.value(f"select min(ts) from {table}") == "2024-01-02T00:00:00.000000Z"
    server.exec(f"create table {table}_t (ts timestamp, v long) timestamp(ts) partition by day")
    for name in ("x", f"{table}_t"):
        assert "epoch_s" in imp(server, name, b"ts,v\n5,1\n6,2\n", 400, timestamp="ts")["status"]
    imp(server, f"{table}_t", b"ts,v\n5,1\n6,2\n", timestampFormat="epoch_s")
    assert server.value(f"select max(ts) from {table}_t") == "1970-01-01T00:00:06.000000Z"


def test_types_and_values_of_a_file_of_odd_notations(server, table):
    body = ("ts;zip;price;qty;ok;big;missing;id;ip\n"
            "31.01.2024 15:04;01234;1.234,5;+1;yes;12345678901234567890;NA;00000000-0000-0000-0000-000000000001;10.0.0.1\n"
            "01.02.2024 15:04;98765;0,25;-2;no;1;7;00000000-0000-0000-0000-000000000002;10.0.0.2\n"
            "02.02.2024 15:04;;;;;;N/A;;\n").encode()
    answer = imp(server, table, body)
    assert types(answer) == {"ts": "TIMESTAMP", "zip": "VARCHAR", "price": "DOUBLE", "qty": "LONG", "ok": "BOOLEAN", "big": "DECIMAL(38,0)", "missing": "LONG",
                             "id": "UUID", "ip": "IPV4"}
    assert (answer["rowsImported"], answer["valuesNulled"]) == (3, 0)
    found = rows(server, f"select ts, zip, price, qty, ok, big::varchar, missing from {table} order by ts")
    assert found == [["2024-01-31T15:04:00.000000Z", "01234", 1234.5, 1, True, "12345678901234567890", None],
                     ["2024-02-01T15:04:00.000000Z", "98765", 0.25, -2, False, "1", 7], ["2024-02-02T15:04:00.000000Z", None, None, None, None, None, None]]


def test_a_date_and_a_time_of_day(server, table, tmp_path):
    body = b"date,time,v\n20240131,150405,1\n20240201,000000,2\n"
    imp(server, table, body, dateTime="date,time", timestamp="at")
    assert rows(server, f"select at, v from {table} order by at") == [[AT, 1], ["2024-02-01T00:00:00.000000Z", 2]]
    file = tmp_path / "t.csv"
    file.write_bytes(body)
    load(file, "--server", f"http://127.0.0.1:{server.http_port}", "--table", table, "--date-time", "date,time", "--timestamp", "at")
    assert server.count(table) == 4


# A dry run.


def test_a_dry_run_says_what_is_found_and_why(server, table, tmp_path):
    body = b"# made by x\nts;price;zip\n31/01/2024 15:04;1,5;01234\n01/02/2024 15:04;2,5;98765\n"
    answer = imp(server, table, body, dryRun="true")
    assert not server.has_table(table) and answer["rowsImported"] == 0
    found = dict(answer["found"])
    assert (found["encoding"], found["delimiter"], found["header"]) == ("UTF-8", ";", "line 2")
    assert "day before month" in found["column ts"] and '"31/01/2024 15:04"' in found["column ts"]
    assert found["column price"].startswith("DOUBLE '1,5'") and found["column zip"].startswith("VARCHAR")
    assert 'TIMESTAMP("ts")' in answer["statement"]
    file = tmp_path / f"{table}.csv"
    file.write_bytes(body)
    for where in (("--data", tmp_path / "none"), ("--server", f"http://127.0.0.1:{server.http_port}")):
        out, _ = run("import", file, *where, "--dry-run")
        assert "-- column ts: TIMESTAMP 'dmy': day before month" in out and 'CREATE TABLE' in out
        shown = json.loads(run("import", file, *where, "--dry-run", "--json")[0])
        assert shown["found"]["delimiter"] == ";" and shown["statement"].startswith("CREATE TABLE")
    assert not server.has_table(table) and not (tmp_path / "none").exists()


# Random tables through pandas.


WORDS = ["plain", "a,b", "a;b", 'say "x"', "it's", "two\nlines", "tab\tbed", "Zoë", "NA-like", "#hash", " spaced ", "0x1f", "é€", "pipe|d"]


def frame_of(chance, count):
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta([chance.randrange(0, 10**7) for _ in range(count)], unit="s")
    none = lambda value: None if chance.random() < 0.1 else value  # noqa: E731
    return pd.DataFrame({
        "ts": sorted(start),
        "whole": pd.array([none(chance.randrange(-10**12, 10**12)) for _ in range(count)], dtype="Int64"),
        "part": [none(round(chance.uniform(-1e6, 1e6), 3)) for _ in range(count)],
        "flag": pd.array([chance.random() < 0.5 for _ in range(count)], dtype="boolean"),
        "text": [none(chance.choice(WORDS) + str(chance.randrange(1000))) for _ in range(count)],
        "zip": [f"{chance.randrange(100000):05d}" for _ in range(count)],
    })


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_by_pandas_come_back(server, table, tmp_path, seed):
    chance = random.Random(seed)
    frame = frame_of(chance, chance.randrange(20, 200))
    frame.loc[0, "zip"] = "00501"
    decimal, separator = chance.choice([(".", ","), (",", ";"), (".", "\t"), (",", "|"), (".", ";")])
    quotechar, encoding = chance.choice(['"', '"', "'"]), chance.choice(["utf-8", "utf-8-sig", "utf-16"])
    dates = chance.choice([None, "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y%m%d %H%M%S", "%d-%b-%Y %H:%M:%S"])
    quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    ends = chance.choice(["\n", "\r\n"])
    out = io.StringIO(newline="")
    frame.to_csv(out, index=False, sep=separator, decimal=decimal, quotechar=quotechar, date_format=dates, quoting=quoting, lineterminator=ends)
    body = out.getvalue().encode(encoding)
    body = chance.choice([bytes, gzip.compress, zstd])(body)
    said = {"quote": quotechar} if chance.random() < 0.5 else {}
    file = tmp_path / f"{table}_f.csv"
    file.write_bytes(body)
    imp(server, table, body, **said)
    flags = [x for name, value in said.items() for x in (f"--{name}", value)]
    load(file, "--server", f"http://127.0.0.1:{server.http_port}", *flags)
    expected = [[ts.strftime("%Y-%m-%dT%H:%M:%S.000000Z"), *(None if pd.isna(v) else getattr(v, "item", lambda v=v: v)() for v in rest)] for ts, *rest in frame.itertuples(index=False)]
    # An empty text in quotes is the empty text.
    key = lambda row: json.dumps(row, default=str)  # noqa: E731
    for name in (table, f"{table}_f"):
        found = [[*row[:4], row[4] or None, row[5]] for row in rows(server, f"select ts, whole, part, flag, text, zip from {name}")]
        assert sorted(map(key, found)) == sorted(map(key, expected)), (seed, separator, decimal, quotechar, dates, quoting)
