"""Every scalar function with arguments of every type, NULL and values at the edges of their types.

- No call fails inside: the answer is a value or an error of the caller, without internal names in its text.
- The type of a result does not depend on a NULL.
- A call over columns gives what the same call over constants gives.

`MATRIX_CALLS` sets the number of calls in each test (0 for all of them), `MATRIX_SEED` another sample than that of the day.
"""

import datetime as dt
import http.client
import itertools
import json
import os
import random
import re
import urllib.parse

import pytest

CALLS = int(os.environ.get("MATRIX_CALLS") or 3000)
SEED = int(os.environ.get("MATRIX_SEED") or dt.date.today().strftime("%Y%m%d"))
ARGUMENTS_MAX = 3

# The first value of a type is the one that functions are most likely to take.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "INT": ["2::int", "0::int", "(-2147483648)::int", "2147483647::int"],
    "LONG": ["3", "0", "-1", "(-9223372036854775807)", "9223372036854775807"],
    "DOUBLE": ["1.5::double", "'-0'::double", "'NaN'::double", "'-Infinity'::double", "1e308::double"],
    "DECIMAL(12,2)": ["2.25::decimal(12,2)", "(-0.01)::decimal(12,2)", "9999999999.99::decimal(12,2)"],
    "VARCHAR": ["'abc'", "''", "'é\n😀'", "'2024-01-01'"],
    "TIMESTAMP": ["'2024-02-29T23:59:59.999999'::timestamp", "'0001-01-01'::timestamp", "'1969-12-31T23:59:59.999999'::timestamp", "'9999-12-31T23:59:59.999999'::timestamp"],
    "TIMESTAMP_NS": ["'2024-02-29T01:02:03.123456789'::timestamp_ns", "'1677-09-22'::timestamp_ns", "'2262-04-11'::timestamp_ns"],
    "DATE": ["'2024-02-29'::date", "'0001-01-01'::date", "'9999-12-31'::date"],
    "INTERVAL": ["interval '1 hour'", "interval '-1 month'", "interval '1 year 2 days 00:00:00.5'"],
    "UUID": ["'11111111-1111-1111-1111-111111111111'::uuid"],
    "IPV4": ["'10.0.0.1'::ipv4", "'255.255.255.255'::ipv4"],
    "BINARY": ["'\\x00ff'::binary", "'\\x'::binary"],
    "DOUBLE[]": ["ARRAY[1.0, 2.0]::double[]", "ARRAY[]::double[]"],
    "JSON": ["'{\"a\": [1, null]}'::json", "'null'::json"],
}
COLUMNS = {name: f"c{at}" for at, name in enumerate(VALUES) if name != "INTERVAL"}
"""Tables have no columns of intervals."""

# Functions whose results differ from call to call, or that wait, change the server or say something about it.
OPEN = re.compile(
    r"arrow_|rnd_|random|uuid|now|today|tomorrow|yesterday|sys|clock|current_|session|statement_timestamp|transaction|txid|touch"
    r"|sleep|pg_|has_|set_|reload|flush|dump|simulate|version|inet_|col_description|obj_description|shobj|timestamp_shuffle"
)
# The input and output functions of types, which pg_type names and nobody calls.
OF_TYPES = re.compile(r"(in|out|recv|send)$")
INTERNAL = re.compile(r"Utf8|Int\d+\(|Float64\(|Decimal\d+|Interval\w+Nano|Timestamp\((?:Nano|Micro|Milli)|__\w|DataFusion|Arrow error|ScalarValue|Field \{|internal error|likely caused by a bug|var\(|·", re.IGNORECASE)


class Asker:
    """One kept connection: a new one for each call takes longer than the call."""

    def __init__(self, server):
        self.server, self.connection = server, None

    def ask(self, sql):
        """(status, answer)."""
        body = urllib.parse.urlencode({"query": sql, "quoteLargeNum": "true", "timeout": "20"})
        for _ in range(2):
            self.connection = self.connection or self.server.connection()
            try:
                self.connection.request("POST", "/exec", body, {"Content-Type": "application/x-www-form-urlencoded"})
                answer = self.connection.getresponse()
                return answer.status, json.loads(answer.read())
            except (http.client.HTTPException, ConnectionError):
                self.connection = None
        raise AssertionError(f"no answer to {sql}")


def names(server):
    rows = server.rows("SELECT DISTINCT proname FROM pg_proc WHERE prokind = 'f' AND NOT proretset ORDER BY proname")
    is_called = lambda name: not OF_TYPES.search(name) and "sleep" not in name and re.fullmatch(r"[a-z]\w*", name)
    return [name for (name,) in rows if is_called(name)]


def calls(server, r):
    """All (name, types) of up to three arguments, or a sample of them."""
    of_types = [types for count in range(ARGUMENTS_MAX + 1) for types in itertools.product(VALUES, repeat=count)]
    all_names = names(server)
    assert len(all_names) > 200, all_names
    if not CALLS:
        yield from itertools.product(all_names, of_types)
        return
    short = [types for types in of_types if len(types) < 2]
    for at in range(CALLS):
        # One half with at most one argument: most functions have few.
        yield all_names[at % len(all_names)], r.choice(short if r.random() < 0.5 else of_types)


def literal(name, args):
    return f"{name}({', '.join(args)})"


def problem(status, answer):
    """Returns the problem of an answer, or None."""
    if status >= 500:
        return f"status {status}: {answer.get('error')}"
    if "error" in answer and (found := INTERNAL.search(answer["error"])):
        return f"internal name {found[0]!r} in: {answer['error']}"
    return None


def test_no_call_fails_inside(server):
    r, asker, found, answered = random.Random(SEED), Asker(server), [], 0
    for name, types in calls(server, r):
        args = [r.choice(VALUES[of]) if r.random() < 0.8 else f"NULL::{of}" for of in types]
        sql = f"SELECT {literal(name, args)}"
        status, answer = asker.ask(sql)
        answered += status == 200
        if wrong := problem(status, answer):
            found.append(f"{sql}\n  {wrong}")
    assert answered > 50
    assert not found, f"{len(found)} calls, seed {SEED}:\n" + "\n".join(found[:40])


@pytest.fixture(scope="module")
def edges(server):
    server.exec(f"CREATE TABLE function_edges (i INT, {', '.join(f'{column} {of}' for of, column in COLUMNS.items())})")
    rows = []
    for i in range(max(map(len, VALUES.values())) + 1):
        cells = [VALUES[of][i] if i < len(VALUES[of]) else "NULL" for of in COLUMNS]
        rows.append(f"({i}, {', '.join(cells)})")
    server.exec(f"INSERT INTO function_edges VALUES {', '.join(rows)}")
    yield {of: [*values, f"NULL::{of}"] for of, values in VALUES.items()}
    server.exec("DROP TABLE function_edges")


def test_columns_give_what_constants_give(server, edges):
    r, asker, found, compared = random.Random(SEED), Asker(server), [], 0
    for name, types in calls(server, r):
        if not types or not set(types) <= set(COLUMNS) or OPEN.search(name) or asker.ask(f"SELECT {literal(name, [VALUES[of][0] for of in types])}")[0] != 200:
            continue
        places = [r.randrange(len(edges[of])) for of in types]
        constants = asker.ask(f"SELECT {literal(name, [edges[of][place] for of, place in zip(types, places)])}")
        tables = ", ".join(f"function_edges t{at}" for at in range(len(types)))
        rows = " AND ".join(f"t{at}.i = {place if place < len(VALUES[of]) else len(VALUES[of])}" for at, (of, place) in enumerate(zip(types, places)))
        over = f"SELECT {literal(name, [f't{at}.{COLUMNS[of]}' for at, of in enumerate(types)])} FROM {tables} WHERE {rows}"
        columns = asker.ask(over)
        wrong = problem(*columns) or problem(*constants) or difference(constants, columns)
        if wrong:
            values = [edges[of][place] for of, place in zip(types, places)]
            found.append(f"{over}\n  of {values}: {wrong}")
        compared += 1
    assert compared > 20
    assert not found, f"{len(found)} of {compared} calls, seed {SEED}:\n" + "\n".join(found[:40])


def difference(constants, columns):
    (_, one), (_, other) = constants, columns
    if "error" in one and "error" in other:
        return None
    if "error" in one or "error" in other:
        # A function may want a constant: a unit, a zone, a pattern. The error says so.
        is_for_constants = "constant" in other.get("error", "")
        return None if is_for_constants else f"constants give {one.get('error', one.get('dataset'))}, columns {other.get('error', other.get('dataset'))}"
    if one["columns"][0]["type"] != other["columns"][0]["type"]:
        return f"constants are {one['columns'][0]['type']}, columns {other['columns'][0]['type']}"
    if one["dataset"] != other["dataset"]:
        return f"constants give {one['dataset']}, columns {other['dataset']}"
    return None
