"""The files of tests/slt, read: records, and how an answer of the PostgreSQL protocol is compared with what they say.

In: a file's text. Out: `Record`s, and for a result of libpq the lines that the file has.
The files say what the values look like in process. The rules by which the protocol's texts become those:

    NULL                 NULL, and an empty text is (empty); a line break is \\n
    bool                 true and false for t and f
    timestamp            T between day and time; the fraction has three, six or nine digits
    bytea, uuid          hex without \\x, and without dashes
    arrays of numbers    [1.0, 2.5] for {1,2.5}
    numbers              equal as numbers: 1.0 is 1, inf is Infinity

Everything else is compared as text.
"""

import re
from dataclasses import dataclass

BOOL, BYTEA, TIMESTAMP, UUID = 16, 17, 1114, 2950
# int2[], int4[], int8[], float8[]
NUMBER_ARRAYS = {1005, 1007, 1016, 1022}


@dataclass
class Record:
    line: int
    kind: str  # ok, count, error or query
    sql: str
    # Rows as lines, a number of rows, or a pattern.
    expected: object = None
    # Run only by engines of this name.
    only: str | None = None
    # Not run by engines of this name.
    skip: str | None = None
    # Rows are compared in the order of their texts.
    is_sorted: bool = False


def records(text):
    lines = text.split("\n")
    at, only, skip = 0, None, None
    while at < len(lines):
        words = lines[at].split()
        if not words or lines[at].startswith("#"):
            at += 1
            continue
        if words[0] == "onlyif":
            only, at = words[1], at + 1
            continue
        if words[0] == "skipif":
            skip, at = words[1], at + 1
            continue
        start, at = at, at + 1
        body = []
        while at < len(lines) and lines[at].strip() and lines[at] != "----":
            body.append(lines[at])
            at += 1
        record = Record(start + 1, "", "\n".join(body), only=only, skip=skip)
        only, skip = None, None
        match words:
            case ["statement", "ok"]:
                record.kind = "ok"
            case ["statement", "count", count]:
                record.kind, record.expected = "count", int(count)
            case ["statement", "error", *_]:
                record.kind, record.expected = "error", lines[start].split(" ", 2)[2] if len(words) > 2 else ""
            case ["query", _] | ["query", _, "rowsort"]:
                record.kind, record.expected, record.is_sorted = "query", [], words[-1] == "rowsort"
                assert at < len(lines) and lines[at] == "----", f"line {start + 1}: a query without ----"
                at += 1
                while at < len(lines) and lines[at]:
                    record.expected.append(lines[at])
                    at += 1
            case _:
                raise AssertionError(f"line {start + 1}: this runner does not know {lines[start]!r}")
        yield record


def shown(oid, value):
    """The text of a value as the files have it."""
    if value is None:
        return "NULL"
    text = value.decode()
    if oid == BOOL:
        return {"t": "true", "f": "false"}[text]
    if oid == TIMESTAMP:
        whole, _, fraction = text.replace(" ", "T", 1).partition(".")
        return f"{whole}.{fraction.ljust(-(-len(fraction) // 3) * 3, '0')}" if fraction else whole
    if oid == BYTEA:
        text = text.removeprefix("\\x")
    if oid == UUID:
        text = text.replace("-", "")
    if oid in NUMBER_ARRAYS:
        text = text.replace("{", "[").replace("}", "]").replace(",", ", ").replace("NULL", "")
    return text.replace("\n", "\\n") or "(empty)"


def rows(result):
    """The lines of a result of libpq."""
    columns = range(result.nfields)
    return [" ".join(shown(result.ftype(c), result.get_value(r, c)) for c in columns) for r in range(result.ntuples)]


def is_same(found, expected):
    """As text, or part by part as numbers."""
    if found == expected:
        return True
    parts = [re.split(r"([\s,\[\]])", line) for line in (found, expected)]
    return len(parts[0]) == len(parts[1]) and all(a == b or number(a) == number(b) is not None for a, b in zip(*parts))


def number(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return "nan" if value != value else value
