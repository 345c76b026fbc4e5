"""Values of every type that Tidalite and PostgreSQL share, for tests of clients that run on both.

Each test takes the fixture `side` and runs twice: on Tidalite, and on PostgreSQL, which confirms the expected values.
"""

import dataclasses
import datetime as dt
import json
import math
import struct
import uuid
from decimal import Decimal

UTC = dt.timezone.utc


@dataclasses.dataclass
class Side:
    """A server under test, as clients of PostgreSQL see it."""

    name: str
    port: int
    user: str = "postgres"
    database: str = "tidalite"
    host: str = "127.0.0.1"

    @property
    def arguments(self):
        return {"host": self.host, "port": self.port, "user": self.user}

    def url(self, scheme="postgresql"):
        return f"{scheme}://{self.user}@{self.host}:{self.port}/{self.database}"

    @property
    def is_tidalite(self):
        return self.name == "tidalite"


COLUMNS = {
    "id": "bigint", "b": "boolean", "i2": "smallint", "i4": "integer", "i8": "bigint", "f4": "real", "f8": "double precision", "n": "numeric(18,3)",
    "at": "timestamp", "d": "date", "t": "text", "bin": "bytea", "u": "uuid", "j": "json", "arr": "double precision[]",
}
ODD = "täxt 😀 \u202e 'q' \"d\" \\ \\n \n\r\t %s %% $1 :x ? {,} NULL"

#: Rows in the order of `COLUMNS`. JSON is the text that the server stores. asyncpg sends the least and greatest times as infinity.
ROWS = [
    (1, True, -(2**15), -(2**31), -(2**63), -(2.0**-149), -1.7976931348623157e308, Decimal("-999999999999999.999"), dt.datetime(1, 1, 1, 0, 0, 0, 1), dt.date(1, 1, 2), "", b"",
     uuid.UUID(int=0), "{}", []),
    (2, False, 2**15 - 1, 2**31 - 1, 2**63 - 1, 3.4028234663852886e38, 5e-324, Decimal("999999999999999.999"), dt.datetime(9999, 12, 31, 23, 59, 59, 999998),
     dt.date(9999, 12, 30), ODD, bytes(range(256)), uuid.UUID(int=2**128 - 1), '{"a":  [1, null, "ü"]}', [1.0, None, -0.0, 0.1]),
    (3, True, 0, 0, 0, math.nan, math.nan, Decimal("0.000"), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.date(1969, 12, 31), "NULL", b"\\x00",
     uuid.UUID("11111111-2222-3333-4444-555555555555"), "null", [math.nan, math.inf, -math.inf]),
    (4, False, 1, 1, 1, math.inf, -math.inf, Decimal("-0.001"), dt.datetime(1970, 1, 1), dt.date(1970, 1, 1), "a" * 3000, b"\0" * 3000, uuid.UUID(int=1), '"x"', [1e300] * 500),
    (5, None, None, None, None, -0.0, -0.0, None, dt.datetime(2024, 2, 29, 12, 34, 56, 789012), dt.date(2024, 2, 29), None, None, None, "1.50", None),
    (6, *[None] * 14),
]

#: Types of parameters that are not types of columns here: (type in SQL, value).
PARAMETERS = [
    ("interval", dt.timedelta(days=3, seconds=5, microseconds=7)), ("interval", -dt.timedelta(hours=2)), ("time", dt.time(23, 59, 59, 999999)), ("timestamptz", dt.datetime(2024, 7, 1, 12, 0, 0, 1, UTC)),
    ("timestamptz", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)), ("int[]", [1, None, -(2**31)]), ("bigint[]", [2**63 - 1]), ("smallint[]", [1, 2]), ("text[]", ["a", None, 'q"\\,{} ü', "", "NULL"]),
    ("boolean[]", [True, None, False]), ("timestamp[]", [dt.datetime(2024, 1, 1, 0, 0, 0, 1), None]), ("date[]", [dt.date(2024, 1, 1), None]), ("uuid[]", [uuid.UUID(int=7), None]),
    ("numeric(38,10)", Decimal("1234567890123456789012345678.0123456789")), ("numeric(10,2)[]", [Decimal("1.50"), None]), ("float8[]", [1.5, math.inf, None]), ("float8[]", [[1.5, 2.0], [3.0, None]]), ("varchar", "ü"), ("varchar(3)", "abc"), ("oid", 16384),
]

#: (statement, SQLSTATE). Statements that need a table have {t}, which has the columns of `COLUMNS`.
ERRORS = [
    ("SELECT nothing FROM {t}", "42703"), ("SELECT * FROM no_such_table", "42P01"), ("SELEC 1", "42601"), ("SELECT 1/0", "22012"), ("SELECT no_such_function(1)", "42883"),
    ("SELECT 9223372036854775807 + 1", "22003"), ("SELECT 'x'::integer", "22P02"), ("SELECT '2024-13-01'::timestamp", "22008"), ("SELECT 'x'::uuid", "22P02"), ("SELECT '{{'::json", "22P02"),
    ("CREATE TABLE {t} (x int)", "42P07"), ("INSERT INTO {t} (id, nothing) VALUES (1, 2)", "42703"),
    ("SELECT count(*) FROM {t} GROUP BY nothing", "42703"), ("DROP TABLE no_such_table", "42P01"), ("SELECT sum(count(*)) FROM {t}", "42803"), ("SELECT (SELECT 1 UNION SELECT 2)", "21000"),
    ("INSERT INTO {t} (id, n) VALUES (1, 1000000000000000.0)", "22003"),
]


def create(table):
    return f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})"


def plain(value):
    """A form in which NaN equals NaN and −0 differs from 0."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, memoryview):
        return bytes(value)
    return value


def single(value):
    """The nearest number of four bytes."""
    return None if value is None else struct.unpack("f", struct.pack("f", value))[0]


def cells(rows, names, has_signed_zero, parse):
    """{(number of the row, column): value in a comparable form}"""
    found = {}
    for number, row in enumerate(rows):
        for name, value in zip(names, row, strict=True):
            if name == "f4":
                # The digits of a real are those that identify it.
                value = single(value)
            if name == "j" and value is not None:
                value = parse(value)
            value = plain(value)
            found[number, name] = value if has_signed_zero else without_sign(value)
    return found


def without_sign(value):
    if isinstance(value, list):
        return [without_sign(item) for item in value]
    return "0.0" if value == "-0.0" else value


def check_rows(found, names=tuple(COLUMNS), has_signed_zero=True, is_json_parsed=False):
    """Asserts that `found` are the columns `names` of `ROWS`; a failure shows the cells that differ."""
    at = [list(COLUMNS).index(name) for name in names]
    expected = cells([[row[n] for n in at] for row in ROWS], names, has_signed_zero, json.loads if is_json_parsed else str)
    found = cells(found, names, has_signed_zero, lambda value: value)
    assert len(found) == len(expected)
    other = {place: (found[place], expected[place]) for place in expected if found[place] != expected[place] or not isinstance(found[place], type(expected[place]))}
    assert not other, other
