"""Input that claims more than it has: Parquet files and nested JSON are refused with errors that say so.

The crate `parquet` allocates what a file claims, recurses into nested columns and panics at damaged files.
"""

import io
import json
import subprocess

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from server import SqlError, binary
from test_inputs import peak_mib, reset_peak

CLAIM = (1 << 31) - 1
DEPTH = 1_000_000
GROWTH_MIB_MAX = 256


# The compact protocol of Thrift


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def number(field_delta, value, kind=5):
    return bytes([field_delta << 4 | kind]) + varint(value << 1)


def text(field_delta, value):
    return bytes([field_delta << 4 | 8]) + varint(len(value)) + value


def list_of(field_delta, count, items=b"", kind=12):
    return bytes([field_delta << 4 | 9, 15 << 4 | kind]) + varint(count) + items


GROUP = text(4, b"g") + number(1, 1) + b"\0"
COLUMN = number(1, 2) + number(2, 1) + text(1, b"x") + b"\0"


def footer(columns, groups):
    """A file that is only a footer: the columns, and what is in place of the list of row groups."""
    schema = list_of(1, len(columns), b"".join(columns))
    body = number(1, 2) + schema + number(1, 0, kind=6) + groups + b"\0"
    return b"PAR1" + body + len(body).to_bytes(4, "little") + b"PAR1"


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value >> 1, at


def claiming(data, at, uncompressed=None, entries=None):
    """A file whose page at `at` claims other sizes. The page gets shorter by what its header gets longer."""
    kind, after_kind = take_varint(data, at + 1)
    old_uncompressed, after_uncompressed = take_varint(data, after_kind + 1)
    compressed, after_compressed = take_varint(data, after_uncompressed + 1)
    rest, end = data[after_compressed:after_compressed + 1], after_compressed + 1
    if entries is not None:
        assert kind == 2 and data[after_compressed:after_compressed + 2] == b"\x4c\x15"
        _, end = take_varint(data, after_compressed + 2)
        rest = b"\x4c" + number(1, entries)
    head_before = end - at
    for lost in range(1, 12):
        head = b"".join(number(1, value) for value in (kind, uncompressed or old_uncompressed, compressed - lost)) + rest
        if len(head) == head_before + lost:
            break
    else:
        raise AssertionError("no header of that length")
    # What follows the changed fields of the header, and the page without its last bytes.
    tail = data[end:]
    page_end = compressed_end(data, at) - end
    return data[:at] + head + tail[:page_end - lost] + tail[page_end:]


def compressed_end(data, at):
    """The end of the page at `at`, whose header pyarrow wrote: it is read again to find its length."""
    _, after = take_varint(data, at + 1)
    _, after = take_varint(data, after + 1)
    compressed, after = take_varint(data, after + 1)
    return header_end(data, after) + compressed


def header_end(data, at):
    """The end of a structure without texts and lists, from the head of a field on."""
    while data[at] != 0:
        kind, at = data[at] & 15, at + 1
        if kind in (5, 6):
            _, at = take_varint(data, at)
        elif kind == 12:
            at = header_end(data, at)
        else:
            assert kind in (1, 2)
    return at + 1


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Bytes of a file with a dictionary page and data pages, and the offsets of the first two pages."""
    table = pa.table({"x": pa.array([f"text {n % 50}" for n in range(20_000)])})
    out = io.BytesIO()
    pq.write_table(table, out, compression="snappy", write_statistics=False)
    chunk = pq.read_metadata(io.BytesIO(out.getvalue())).row_group(0).column(0)
    return out.getvalue(), chunk.dictionary_page_offset, chunk.data_page_offset


@pytest.fixture
def small(servers):
    return servers(env={"TIDALITE_QUERY_MEMORY_BYTES": "256MiB"}).start()


def refused(server, path, data, match):
    """Checks that each way to read the file refuses it, takes little memory and does not panic."""
    path.write_bytes(data)
    reset_peak(server)
    before, log_start = peak_mib(server), server.log.stat().st_size
    for statement in [f"SELECT * FROM read_parquet('{path}')", f"SELECT count(x) FROM read_parquet('{path}')", f"CREATE TABLE made AS (SELECT * FROM read_parquet('{path}'))", f"COPY into_it FROM '{path}'"]:
        with pytest.raises(SqlError, match=match) as error:
            server.exec(statement)
        assert error.value.status == 400, statement
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, dbname="d", user="u", autocommit=True) as c, pytest.raises(psycopg.Error, match=match):
        c.execute(f"SELECT * FROM read_parquet('{path}')")
    assert server.value("SELECT 1") == 1
    assert peak_mib(server) < before + GROWTH_MIB_MAX
    assert b"a thread panicked" not in server.log.read_bytes()[log_start:]


def test_parquet_footers_claim_no_more_than_they_have(small, tmp_path):
    small.exec("CREATE TABLE into_it (x TEXT)")
    path = tmp_path / "bad.parquet"
    refused(small, path, footer([GROUP, COLUMN], list_of(1, CLAIM)), "footer is damaged")
    refused(small, path, footer([text(4, b"g") + number(1, CLAIM) + b"\0", COLUMN], list_of(1, 0)), "footer is damaged")
    refused(small, path, footer([GROUP] * DEPTH + [COLUMN], list_of(1, 0)), "nested in more than 100 levels")


def test_parquet_pages_claim_no_more_than_they_may_hold(small, tmp_path, good):
    small.exec("CREATE TABLE into_it (x TEXT)")
    data, dictionary, page = good
    path = tmp_path / "bad.parquet"
    path.write_bytes(data)
    assert small.rows(f"SELECT count(x), min(x) FROM read_parquet('{path}')") == [[20_000, "text 0"]]
    refused(small, path, claiming(data, page, uncompressed=CLAIM), "claims 2147483647 uncompressed bytes")
    refused(small, path, claiming(data, dictionary, entries=CLAIM), "claims 2147483647 entries")


def test_the_import_command_refuses_claims(tmp_path):
    path = tmp_path / "bad.parquet"
    path.write_bytes(footer([GROUP, COLUMN], list_of(1, CLAIM)))
    shown = subprocess.run([binary(), "import", str(path), "--data", str(tmp_path / "d")], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 1 and "footer is damaged" in shown.stdout + shown.stderr, shown


def test_pages_that_compress_well_are_read(small, tmp_path):
    """Twelve columns of one value each, without a dictionary: 14,000 to 1 in pages of 1 MiB and in pages of 60."""
    table = pa.table({f"c{n}": pa.array([1.5] * 1_500_000) for n in range(12)})
    for page_bytes in (1 << 20, 60 << 20):
        pq.write_table(table, tmp_path / "one.parquet", compression="zstd", use_dictionary=False, data_page_size=page_bytes, row_group_size=1_500_000)
        assert small.rows(f"SELECT sum(c0), sum(c11) FROM read_parquet('{tmp_path}/one.parquet')") == [[2_250_000.0, 2_250_000.0]]


DEEP = "[" * DEPTH
WHOLE = DEEP + "]" * DEPTH
# A column stores 256 levels, functions read 127.
DEEP_FOR_READERS = "[" * 200 + "]" * 200


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        (f"SELECT json_typeof('{WHOLE}')", "nested more than 127 levels deep"),
        (f"SELECT json_array_length('{DEEP}')", "nested more than 127 levels deep"),
        (f"SELECT json_extract_path_text('{WHOLE}', '0')", "nested more than 256 levels deep"),
        (f"SELECT '{WHOLE}'::json @> '1'::json", "nested more than 256 levels deep"),
        (f"SELECT '{DEEP_FOR_READERS}'::json @> '1'::json", "nested more than 127 levels deep"),
        (f"SELECT json_agg(j) FROM (SELECT '{WHOLE}'::json j)", "nested more than 256 levels deep"),
        (f"SELECT json_extract('{WHOLE}', '${'[*]' * DEPTH}')", "invalid JSON path"),
        (f"SELECT '{WHOLE}'::double[]", "at most 32 dimensions"),
        (f"SELECT '{'{' * DEPTH}'::double[]", "at most 32 dimensions"),
        (f"SELECT '{WHOLE}'::int[]", "nested more than 127 levels deep"),
        (f"SELECT '{'{' * DEPTH}'::text[]", "nested more than 127 levels deep"),
        (f"INSERT INTO documents VALUES ('{WHOLE}')", "nested more than 256 levels deep"),
    ],
    ids=lambda part: part[:40],
)
def test_nested_json_in_statements(server, statement, match):
    server.exec("CREATE TABLE IF NOT EXISTS documents (j JSON)")
    with pytest.raises(SqlError, match=match) as error:
        server.exec(statement)
    assert error.value.status == 400
    assert server.value("SELECT 1") == 1


def test_parts_of_nested_json(server):
    """Operators that read one part do not recurse; a text that is no JSON has no part."""
    assert server.value(f"SELECT '{DEEP}' -> 0") is None
    assert server.value(f"SELECT length(('{WHOLE}' -> 0)::text)") == 2 * DEPTH - 2


def test_nested_json_over_http(server):
    head = {"Content-Type": "application/json"}
    for body in [DEEP, WHOLE, f'{{"query": {DEEP}', f'{{"query": {WHOLE}}}', f'{{"query": "SELECT $1", "params": {WHOLE}}}']:
        code, _, answer = server.request("POST", "/exec", body.encode(), head)
        assert code == 400, (body[:60], answer[:200])
        assert json.loads(answer)["error"]
    assert server.value("SELECT 1") == 1


def test_nested_json_in_files(server, tmp_path):
    server.exec("CREATE TABLE IF NOT EXISTS imported (j JSON)")
    path = tmp_path / "deep.csv"
    path.write_text(f'j\n"{WHOLE}"\n')
    with pytest.raises(SqlError, match="nested more than 256 levels deep"):
        server.exec(f"COPY imported FROM '{path}'")
    path.write_text(f'j\n"{"[" * 256 + "]" * 256}"\n')
    server.exec(f"COPY imported FROM '{path}'")
    assert server.value("SELECT count(*) FROM imported") == 1
