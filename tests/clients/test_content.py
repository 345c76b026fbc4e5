"""What was loaded is what is there: tables against an independent reading of the same lines, column by column."""

import gzip
import io
import threading

import duckdb
import lines
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

BLOCK_BYTES = 1 << 20
WINDOW = 6000


def files():
    cpu = lines.cpu_lines(hosts=100, steps=500)
    iot = lines.iot_lines(trucks=50, steps=500)
    return {
        "cpu": {"ordered": cpu, "shuffled": lines.shuffled(cpu, WINDOW), "random": lines.shuffled(cpu, len(cpu))},
        "iot": {"ordered": iot, "shuffled": lines.shuffled(iot, WINDOW), "random": lines.shuffled(iot, len(iot))},
    }


@pytest.fixture(scope="module")
def data():
    return files()


@pytest.fixture(scope="module")
def expected(data):
    return {kind: lines.read_independently(variants["ordered"]) for kind, variants in data.items()}


def blocks(rows):
    """Cut at line ends, as loaders do."""
    part, size = [], 0
    for line in rows:
        part.append(line)
        size += len(line) + 1
        if size >= BLOCK_BYTES:
            yield lines.blob(part)
            part, size = [], 0
    if part:
        yield lines.blob(part)


def load_tcp(server, rows, connections):
    parts = list(blocks(rows))

    def push(k):
        with server.tcp() as s:
            s.settimeout(120)
            for part in parts[k::connections]:
                s.sendall(part)

    threads = [threading.Thread(target=push, args=(k,)) for k in range(connections)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def load_http(server, rows, how):
    for part in blocks(rows):
        if how == "gzip":
            server.write_ok(gzip.compress(part, 1), headers={"Content-Encoding": "gzip"})
        elif how == "chunked":  # http.client sends iterables in chunks; these end in the middle of lines
            status, _, body = server.request("POST", "/api/v2/write", (part[a : a + 50_001] for a in range(0, len(part), 50_001)))
            assert status == 204, body
        else:
            server.write_ok(part)


def exported(server, table, like):
    """The table by /exp, in the types of `like`."""
    body = server.export(f'select * from "{table}"')
    names = body[: body.index(b"\n")].decode().replace('"', "").strip().split(",")
    assert sorted(names) == sorted(like.column_names)
    kinds = {n: pa.string() if n == "timestamp" else like.schema.field(n).type for n in names}
    got = pa.csv.read_csv(io.BytesIO(body), convert_options=pa.csv.ConvertOptions(
        column_types=kinds, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]))
    texts = pc.utf8_rtrim(got["timestamp"], "Z")
    # Fixed number of decimals, so that one cast reads them all.
    whole, fraction = pc.utf8_slice_codeunits(texts, 0, 19), pc.utf8_rpad(pc.utf8_slice_codeunits(texts, 20), 9, "0")
    stamps = pc.cast(pc.cast(whole, pa.timestamp("s")), pa.int64())
    stamps = pc.add(pc.multiply(stamps, 10**9), pc.cast(fraction, pa.int64()))
    got = got.set_column(got.column_names.index("timestamp"), "timestamp", stamps)
    return got.select(like.column_names)


def differences(got, like):
    """Rows of one and not of the other, as a multiset; an empty text when there are none."""
    with duckdb.connect() as db:
        db.register("got", got)
        db.register("expected_rows", like)
        missing = db.sql("select * from expected_rows except all select * from got limit 3").fetchall()
        extra = db.sql("select * from got except all select * from expected_rows limit 3").fetchall()
        columns = [c for c in like.column_names
                   if db.sql(f'select "{c}", count(*) n from got group by 1 except select "{c}", count(*) n from expected_rows group by 1 limit 1').fetchall()]
    return f"columns that differ: {columns}, missing: {missing}, extra: {extra}" if missing or extra else ""


LOADS = {
    "tcp1": lambda s, rows: load_tcp(s, rows, 1), "tcp2": lambda s, rows: load_tcp(s, rows, 2), "tcp4": lambda s, rows: load_tcp(s, rows, 4),
    "http": lambda s, rows: load_http(s, rows, "plain"), "gzip": lambda s, rows: load_http(s, rows, "gzip"), "chunked": lambda s, rows: load_http(s, rows, "chunked"),
}
CASES = [(kind, order, how) for kind in ("cpu", "iot") for order, how in
         [("ordered", "tcp1"), ("ordered", "tcp4"), ("ordered", "http"), ("ordered", "chunked"), ("shuffled", "tcp1"), ("shuffled", "tcp2"),
          ("shuffled", "tcp4"), ("shuffled", "gzip"), ("random", "tcp2"), ("random", "http")]]


@pytest.mark.parametrize("kind,order,how", CASES)
def test_tables_equal_the_file(servers, data, expected, kind, order, how):
    server = servers().start()
    LOADS[how](server, data[kind][order])
    for table, like in expected[kind].items():
        server.wait_count(table, like.num_rows)
        assert differences(exported(server, table, like), like) == ""
    # The same again from disk alone.
    assert server.stop() == 0
    server.start()
    for table, like in expected[kind].items():
        assert differences(exported(server, table, like), like) == ""


def test_types_and_designated_timestamp(servers, data):
    server = servers().start()
    load_http(server, data["cpu"]["ordered"][:1000], "plain")
    types = server.types("cpu")
    assert types["hostname"] == types["rack"] == "SYMBOL"
    assert all(types[f] == "LONG" for f in lines.CPU_FIELDS)
    assert types["timestamp"] == "TIMESTAMP"
    assert list(types) == [*"hostname region datacenter rack os arch team service service_version service_environment".split(), *lines.CPU_FIELDS, "timestamp"]
    answer = server.exec("select * from cpu limit 1")
    assert answer["timestamp"] == len(types) - 1


@pytest.mark.parametrize("order", ["ordered", "shuffled"])
@pytest.mark.parametrize("how", ["tcp1", "http"])
def test_rows_come_by_time_and_equal_times_by_arrival(servers, data, how, order):
    server = servers().start()
    rows = data["cpu"][order][:20_000]
    like = lines.read_independently(rows)["cpu"]
    LOADS[how](server, rows)
    server.wait_count("cpu", len(rows))
    # Tidalite keeps a table in this order, so a stable sort of the file is the table.
    order_of = sorted(range(len(rows)), key=like["timestamp"].to_pylist().__getitem__)
    assert exported(server, "cpu", like)["hostname"].to_pylist() == like["hostname"].take(order_of).to_pylist()
