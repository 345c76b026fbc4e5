"""`tidalite import`, `/imp`: files into a folder and into a running server, against Python's csv module."""

import concurrent.futures
import csv
import gzip
import http.server
import io
import json
import os
import random
import subprocess
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from server import binary


def run(*arguments, stdin=None, code=0):
    """(standard output, standard error) of the command, which must end with `code`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TIDALITE_")}
    done = subprocess.run([str(binary()), *map(str, arguments)], input=stdin, capture_output=True, env=env, timeout=120)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def load(*arguments, **more):
    return json.loads(run("import", "--json", *arguments, **more)[0])


def ask(data, query):
    out, _ = run("sql", "--data", data, "--format", "csv", query)
    return list(csv.reader(io.StringIO(out, newline="")))


def rows_of(seed, count):
    """Texts with everything that needs quotes, and numbers; None is NULL."""
    chance = random.Random(seed)
    word = lambda: "".join(chance.choice('ab,"\n é') for _ in range(chance.randrange(1, 8)))  # noqa: E731
    for i in range(count):
        yield (f"2026-01-{i // 1440 % 28 + 1:02d}T{i // 60 % 24:02d}:{i % 60:02d}:00.000000Z", f"s{chance.randrange(5)}",
               word() if chance.random() > 0.1 else None, chance.randrange(-10**12, 10**12), round(chance.uniform(-1e3, 1e3), 4))


def csv_text(rows, header=("ts", "sym", "note", "n", "v"), **dialect):
    out = io.StringIO(newline="")
    writer = csv.writer(out, **dialect)
    if header:
        writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()


QUERY = "select ts, sym, note, n, v from {} order by n"


def same(found, rows):
    """Rows of the shell or of /exp against those that were written."""
    shown = [[None if cell == "" else cell for cell in row] for row in found[1:]]
    for cell, row in zip(shown, sorted(rows, key=lambda r: r[3]), strict=True):
        assert cell[:3] == [row[0], row[1], row[2]]
        assert (int(cell[3]), float(cell[4])) == row[3:]


def test_a_file_becomes_a_table_of_a_folder(tmp_path):
    rows = list(rows_of(1, 5000))
    file, data = tmp_path / "trades.csv", tmp_path / "data"
    file.write_bytes(csv_text(rows))
    plan, _ = run("import", file, "--data", data, "--dry-run")
    assert '"ts" TIMESTAMP,' in plan and '"sym" SYMBOL' in plan and 'TIMESTAMP("ts") PARTITION BY' in plan
    done = load(file, "--data", data, "--partition-by", "MONTH")
    assert (done["rows"], done["tables"], done["left_out"]) == (5000, ["trades"], 0)
    same(ask(data, QUERY.format("trades")), rows)
    # A second time, now into the table that is there, compressed and from standard input.
    done = load("-", "--table", "TRADES", "--data", data, stdin=gzip.compress(csv_text(rows)))
    assert done["rows"] == 5000
    assert ask(data, "select count(*), count(distinct n) from trades")[1] == ["10000", "5000"]


@pytest.mark.parametrize("threads", [1, 3])
def test_delimiters_names_and_types_can_be_said(tmp_path, threads):
    rows = list(rows_of(2, 300))
    file, data = tmp_path / "x", tmp_path / "data"
    file.write_bytes(csv_text(rows, header=None, delimiter="|", lineterminator="\r\n"))
    columns = "ts TIMESTAMP_NS, sym VARCHAR, note VARCHAR, n LONG, v DECIMAL(12,4)"
    done = load(file, "--data", data, "--table", "t", "--delimiter", "|", "--header", "no", "--columns", columns, "--timestamp", "ts", "--threads", threads)
    assert done["rows"] == 300
    found = dict(row[:2] for row in ask(data, "show columns from t")[1:])
    assert found == {"ts": "TIMESTAMP_NS", "sym": "VARCHAR", "note": "VARCHAR", "n": "LONG", "v": "DECIMAL(12,4)"}
    assert ask(data, "select sum(v) from t")[1] == [f"{sum(round(r[4] * 10000) for r in rows) / 10000:.4f}"]


def test_a_bad_record_ends_the_import_or_is_left_out_with_its_place(tmp_path):
    file, data, rejects = tmp_path / "t.csv", tmp_path / "data", tmp_path / "bad.csv"
    file.write_bytes(b'ts,v\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:01Z,two\n"2026-01-01T00:00:02Z"\n2026-01-01T00:00:03Z,4\n')
    types = ("--columns", "v DOUBLE")
    _, error = run("import", file, "--data", data, *types, code=1)
    assert 't.csv: line 3, position 22, column "v": invalid input syntax for type DOUBLE: "two"' in error
    _, error = run("import", file, "--data", data, *types, "--on-error", "skip", "--rejects", rejects, code=1)
    assert "2 records were left out" in error
    assert ask(data, "select v from t")[1:] == [["1.0"], ["4.0"]] or ask(data, "select v from t")[1:] == [["1"], ["4"]]
    assert rejects.read_bytes() == (b'# line 3, position 22, column "v": invalid input syntax for type DOUBLE: "two"\n2026-01-01T00:00:01Z,two\n'
                                    b'# line 4, position 23: only 1 of 2 fields\n"2026-01-01T00:00:02Z"\n')
    # Anew, not behind what is there.
    _, error = run("import", file, "--data", data, "--table", "n", *types, "--on-error", "null", "--rejects", rejects, code=1)
    assert "2 values became NULL" in error
    assert rejects.read_bytes() == (b'# became NULL line 3, position 22, column "v": invalid input syntax for type DOUBLE: "two"\n'
                                    b'# became NULL line 4, position 23: only 1 of 2 fields\n')
    assert ask(data, "select count(*), count(v) from n")[1] == ["4", "2"]


def test_a_first_record_that_is_bad_makes_no_table(tmp_path):
    file, data = tmp_path / "t.csv", tmp_path / "data"
    file.write_bytes(b"ts,v\n2026-01-01T00:00:00Z,x\n")
    run("import", file, "--data", data, "--columns", "v DOUBLE", code=1)
    assert ask(data, "show tables")[1:] == []
    file.write_bytes(b"ts,v\n")
    assert load(file, "--data", data)["rows"] == 0
    assert ask(data, "show tables")[1:] == []


def test_an_error_is_told_while_the_input_is_open(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TIDALITE_")}
    arguments = [str(binary()), "import", "-", "--table", "t", "--data", str(tmp_path / "data"), "--columns", "v LONG"]
    command = subprocess.Popen(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    try:
        # More than the sample and a piece, less than all that is buffered on the way.
        command.stdin.write(b"v\n" + b"1\n" * (3 << 20) + b"x\n" + b"1\n" * (1 << 20))
        command.stdin.flush()
        assert command.wait(timeout=60) == 1
        assert b"line %d, position 1" % ((3 << 20) + 2) in command.stderr.read()
    finally:
        command.kill()
        command.stderr.close()
        try:
            command.stdin.close()
        except BrokenPipeError:
            pass

def test_what_is_asked_wrongly_is_said(tmp_path):
    file, data = tmp_path / "t.csv", tmp_path / "data"
    file.write_bytes(b"a,b\n1,2\n")
    assert "could not be read" in run("import", tmp_path / "nosuch.csv", "--data", data, code=1)[1]
    assert '"NOSUCH" is no type' in run("import", file, "--data", data, "--columns", "a NOSUCH", code=2)[1]
    assert 'column "c" is not in the file, which has a, b' in run("import", file, "--data", data, "--columns", "c INT", code=1)[1]
    assert "which table? give --table" in run("import", "-", "--data", data, stdin=b"a\n1\n", code=1)[1]


def test_a_running_server_takes_files_of_every_kind(server, table, tmp_path):
    url = f"http://127.0.0.1:{server.http_port}"
    rows = list(rows_of(3, 2000))
    file = tmp_path / f"{table}.csv"
    file.write_bytes(csv_text(rows))
    assert load(file, "--server", url)["rows"] == 2000
    same(server.export_rows(QUERY.format(table)), rows)
    lines = tmp_path / f"{table}_l.lp"
    lines.write_bytes(b"".join(b"%s_l,s=a v=%di %d000000000\n" % (table.encode(), i, i) for i in range(1000)))
    assert load(lines, "--server", url)["rows"] == 1000
    assert server.count(f"{table}_l") == 1000
    frame = pa.table({"ts": pa.array(range(500), pa.timestamp("us", "UTC")), "v": pa.array(range(500))})
    pq.write_table(frame, tmp_path / f"{table}_p.parquet")
    assert load(tmp_path / f"{table}_p.parquet", "--server", url)["rows"] == 500
    assert server.value(f"select sum(v) from {table}_p") == sum(range(500))
    bad = tmp_path / f"{table}_bad.csv"
    bad.write_bytes(b"ts,v\n2026-01-01T00:00:00Z,1\n2026-01-01T00:00:01Z,x\n")
    _, error = run("import", bad, "--server", url, "--columns", "v LONG", code=1)
    assert 'line 3, position 22, column "v"' in error


def test_line_protocol_and_urls_go_into_folders(tmp_path):
    data = tmp_path / "data"
    text = b"".join(b"cpu,host=h%d usage=%d.5 %d000000000\n" % (i % 3, i, i) for i in range(3000))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = gzip.compress(text)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    web = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        done = load(f"http://127.0.0.1:{web.server_port}/cpu.lp.gz", "--data", data)
    finally:
        web.shutdown()
    assert (done["rows"], done["tables"]) == (3000, ["cpu"])
    assert ask(data, "select count(*), sum(usage) from cpu")[1][0] == "3000"
    broken = tmp_path / "broken.lp"
    broken.write_bytes(b"cpu usage=1 1\ncpu usage=oops 2\n")
    assert "line 2" in run("import", broken, "--data", data, code=1)[1]


def test_forms_are_taken_as_questdb_takes_them(server, table):
    def upload(parts, **parameters):
        mark = b"----form"
        body = b"".join(b"--" + mark + b'\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % part for part in parts)
        query = "&".join(f"{k}={v}" for k, v in parameters.items())
        status, _, answer = server.request("POST", f"/imp?{query}", body + b"--" + mark + b"--\r\n", {"Content-Type": "multipart/form-data; boundary=" + mark.decode()})
        return status, answer

    file = (b"data", b'; filename="%s"' % table.encode(), b"ts,price\n2026-01-01T00:00:00Z,1.5\n2026-01-01T00:00:01Z,x\n2026-01-01T00:00:02Z,2\n")
    schema = (b"schema", b"", b'[{"name":"price","type":"DOUBLE"}]')
    status, answer = upload([schema, file], fmt="json", timestamp="ts", partitionBy="DAY")
    answer = json.loads(answer)
    assert status == 200 and (answer["status"], answer["rowsImported"], answer["rowsRejected"]) == ("OK", 3, 0)
    assert (answer["timestamp"], answer["partitionBy"], answer["columns"][1]["errors"]) == ("ts", "DAY", 1)
    assert (answer["valuesNulled"], answer["nulled"][0]["line"], answer["nulled"][0]["record"]) == (1, 3, None)
    assert server.value(f"select sum(price) from {table} where price is not null") == 3.5 and server.count(table) == 3
    status, answer = upload([schema, file], name=table, overwrite="true", atomicity="abort")
    assert status == 400 and b'invalid input syntax for type DOUBLE: "x"' in answer
    for asked in ({"atomicity": "some"}, {"columns": "price%20NOSUCH"}, {"rejects": "some"}):
        assert upload([file], name=table, overwrite="true", **asked)[0] == 400
    assert server.count(table) == 3
    status, answer = upload([schema, file], name=table, fmt="json", atomicity="skipRow", overwrite="true")
    assert (json.loads(answer)["rowsImported"], json.loads(answer)["rejected"][0]["record"]) == (2, "2026-01-01T00:00:01Z,x\n")
    assert server.count(table) == 2
    assert upload([schema], name=table)[0] == 400
    status, _, answer = server.request("POST", f"/imp?name={table}_no&create=false", b"a\n1\n")
    assert status == 400 and b"does not exist, and create is false" in answer
    for more, rows in (("", 1), ("&skipLev=true", 2)):
        status, _, answer = server.request("POST", f"/imp?name={table}_lev&overwrite=true&fmt=json{more}", b"a,b\n1,2\n3,4,5\n")
        assert (status, json.loads(answer)["rowsImported"]) == (200, rows)
    # The body itself, appended to what is there now.
    status, _, answer = server.request("POST", f"/imp?name={table}_b&fmt=json", b"a;b\n1;x\n2;y\n")
    assert (status, json.loads(answer)["rowsImported"]) == (200, 2)


def piece_rows(count):
    """A row has its number and a text of several lines; there is no time, so that the table has them as they came."""
    return b"".join(b'%d,"line one\nand some more text to fill pieces, %d"\n' % (i, i % 7) for i in range(count))


def test_a_large_file_comes_to_a_server_in_pieces_that_stay_in_order(server, table, tmp_path):
    url, count = f"http://127.0.0.1:{server.http_port}", 300_000
    file = tmp_path / f"{table}.csv"
    file.write_bytes(b"n,text\n" + piece_rows(count))
    assert file.stat().st_size > 15 << 20
    done = load(file, "--server", url, "--threads", "4")
    assert (done["rows"], done["bytes"]) == (count, file.stat().st_size - len(b"n,text\n"))
    assert [int(row[0]) for row in server.export_rows(f"select n from {table}")[1:]] == list(range(count))
    # A bad record far behind ends it: what is before its piece is in, and nothing of what comes after.
    text = piece_rows(count).replace(b"\n250000,", b"\nx250000,")
    file.write_bytes(b"n,text\n" + text)
    other = f"{table}_bad"
    _, error = run("import", file, "--server", url, "--table", other, "--threads", "4", "--columns", "n LONG", code=1)
    assert 'line 500002, position 1, column "n"' in error
    found = [int(row[0]) for row in server.export_rows(f"select n from {other}")[1:]]
    assert found == list(range(len(found))) and 100_000 < len(found) < 250_000
    assert f"{len(found)} rows of it are in the table" in error


def test_readers_see_no_row_or_all_rows_of_a_large_upload(server, table):
    """More than 64 MiB of rows, which are a load."""
    count = 2_500_000
    text = "ts,n,s\n" + "".join(f"2026-01-{1 + n // 864_000:02d}T{n // 36_000 % 24:02d}:{n // 600 % 60:02d}:{n // 10 % 60:02d}.{n % 10}00000Z,{n},text {n % 7}\n" for n in range(count))
    assert len(text) > 100 << 20
    seen, is_over = set(), threading.Event()

    def read():
        while not is_over.is_set():
            seen.add(server.count(table))

    def upload(query):
        seen.clear()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            reader = pool.submit(read)
            try:
                status, _, body = server.request("POST", f"/imp?name={table}&timestamp=ts&fmt=json{query}", text)
            finally:
                is_over.set()
            reader.result()
        is_over.clear()
        assert (status, json.loads(body)["rowsImported"]) == (200, count), body
        seen.add(server.count(table))

    upload("")
    assert count in seen and seen <= {-1, count}, seen
    upload("")
    assert 2 * count in seen and seen <= {count, 2 * count}, seen
    upload("&overwrite=true")
    assert count in seen and seen <= {2 * count, count}, seen
    assert server.rows(f'select count(*), sum(n) from "{table}"') == [[count, count * (count - 1) // 2]]


def test_all_records_left_out_by_a_server_are_in_the_file(server, table, tmp_path):
    file, rejects = tmp_path / f"{table}.csv", tmp_path / "bad.csv"
    bad = [b"%d,\xff\n" % i if i % 2 else b"%d,x\n" % i for i in range(1500)]
    file.write_bytes(b"n,v\n" + b"1,1\n" + b"".join(bad))
    url = f"http://127.0.0.1:{server.http_port}"
    _, error = run("import", file, "--server", url, "--columns", "v LONG", "--on-error", "skip", "--rejects", rejects, code=1)
    assert "1500 records were left out" in error
    lines = rejects.read_bytes().splitlines(keepends=True)
    assert lines[1::2] == bad
    assert lines[2998].startswith(b"# line 1502, position ")


def test_pieces_wait_for_those_before_them(server, table):
    def send(piece, body, more=""):
        return server.request("POST", f"/imp?name={table}&fmt=json&import={table}&piece={piece}&header=yes{more}", body)

    answers = {}
    send(0, b"n,t\n0,x\n")
    late = threading.Thread(target=lambda: answers.update({2: send(2, b"n,t\n2,z\n")}))
    late.start()
    late.join(0.3)
    assert late.is_alive()
    answers[1] = send(1, b"n,t\n1,y\n")
    late.join(30)
    assert [answers[piece][0] for piece in (1, 2)] == [200, 200]
    assert server.export_rows(f"select n from {table}")[1:] == [["0"], ["1"], ["2"]]
    # What fails ends what comes behind it, whether it waits already or not.
    late = threading.Thread(target=lambda: answers.update({4: send(4, b"n,t\n4,z\n")}))
    late.start()
    status, _, answer = send(3, b"n,t\nbad,z\n", "&atomicity=abort&line=10")
    assert status == 400 and json.loads(answer)["line"] == 12
    late.join(30)
    assert answers[4][0] == 400 and b"a piece of the import before this one failed" in answers[4][2]
    assert server.count(table) == 3


def test_categories_of_parquet_are_symbols_and_types_may_be_said(tmp_path):
    names = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int32()), ["a", "b"])
    frame = pa.table({"ts": pa.array([1, 2, 3, 4], pa.timestamp("us")), "name": names, "note": ["x", "y", "z", "x"], "n": pa.array([1, 2, 3, 4], pa.int32())})
    path, data = tmp_path / "readings.parquet", tmp_path / "d"
    pq.write_table(frame, path)
    types = lambda table: [row[:2] for row in ask(data, f"show columns from {table}")[1:]]  # noqa: E731
    load(path, "--data", data)
    assert types("readings") == [["ts", "TIMESTAMP"], ["name", "SYMBOL"], ["note", "VARCHAR"], ["n", "INT"]]
    assert ask(data, "select name, count(*) from readings order by 1")[1:] == [["a", "2"], ["b", "1"], ["", "1"]]
    load(path, "--data", data, "--table", "said", "--columns", "note SYMBOL, name VARCHAR, n LONG")
    assert types("said") == [["ts", "TIMESTAMP"], ["name", "VARCHAR"], ["note", "SYMBOL"], ["n", "LONG"]]
    assert ask(data, "select * from said")[1:] == ask(data, "select * from readings")[1:]
    assert "nosuch" in run("import", path, "--data", data, "--table", "other", "--columns", "nosuch LONG", code=1)[1]
    assert "--columns is for a new table" in run("import", path, "--data", data, "--columns", "n LONG", code=1)[1]
    assert ask(data, "select count(*) from readings")[1:] == [["4"]]
