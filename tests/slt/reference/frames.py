"""Writes frames.slt: aggregates and window functions over every kind of frame, with each EXCLUDE, NULL and NaN keys, ties and
both zeros. The expected rows are those of PostgreSQL 15, and of DuckDB for functions that PostgreSQL does not have.

Run by hand when a case is added: `python tests/slt/reference/frames.py "host=… dbname=…"` with psycopg and duckdb installed and
a PostgreSQL 15. This script does not query Tidalite.
"""

import decimal
import math
import pathlib
import sys

import duckdb
import psycopg

HEADER = """# Every kind of frame with each EXCLUDE, over keys with NULL, NaN, ties and both zeros.
# Written by reference/frames.py: the expected rows are those of PostgreSQL and DuckDB.
"""

# Rows with equal keys are equal, so that their order has no effect: g, k, v, w, i, s.
TABLE = "f (g INT, k DOUBLE, v DOUBLE, w DOUBLE, i INT, s VARCHAR)"
ROWS = [
    (1, None, 3.0, 1.0, 3, "c"), (1, None, 3.0, 1.0, 3, "c"), (1, "-0.0", 2.0, 4.0, 2, "b"), (1, "0.0", 2.0, 4.0, 2, "b"), (1, 1.0, None, 2.0, None, "e"),
    (1, 2.5, -1.5, 0.0, 5, None), (1, "'NaN'", 7.0, 3.0, 7, "f"), (1, "'NaN'", 7.0, 3.0, 7, "f"), (2, -3.0, 8.0, 5.5, 8, "h"), (2, 5.0, None, 1.0, None, "i"),
    (2, 5.0, None, 1.0, None, "i"), (2, 5.0, None, 1.0, None, "i"), (2, 6.0, 10.0, None, 10, "j"), (2, 7.5, -2.0, 2.0, -2, "k"),
]
PARTITIONS = ["", "PARTITION BY g "]
ORDERS = ["k", "k DESC", "k NULLS FIRST"]
BOUNDS = ["UNBOUNDED PRECEDING AND CURRENT ROW", "1 PRECEDING AND 1 FOLLOWING", "CURRENT ROW AND UNBOUNDED FOLLOWING", "2 PRECEDING AND 1 PRECEDING",
          "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "CURRENT ROW AND CURRENT ROW"]
EXCLUSIONS = ["", "EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES", "EXCLUDE NO OTHERS"]

# (type, function) for PostgreSQL.
COUNTS = [("I", "count(*)"), ("I", "count(v)"), ("I", "count(i) FILTER (WHERE w > 1)"), ("I", "sum(i)"), ("R", "avg(v)"), ("R", "min(v)"), ("R", "max(v)")]
SPREADS = [("R", "var_pop(v)"), ("R", "stddev(v)"), ("R", "corr(v, w)"), ("R", "covar_pop(v, w)"), ("R", "covar_samp(v, w)"), ("I", "regr_count(v, w)"),
           ("R", "regr_slope(v, w)"), ("R", "regr_sxx(v, w)")]
LISTS = [("T", "string_agg(s, ',')"), ("T", "array_to_string(array_agg(i), ',', '-')"), ("T", "min(s)"), ("T", "max(s)")]
BITS = [("T", "bool_and(v > 2)"), ("T", "bool_or(v > 2)"), ("I", "bit_and(i)"), ("I", "bit_or(i)"), ("I", "bit_xor(i)")]
GROUPS = [COUNTS, SPREADS, LISTS, BITS]

# (type, function of Tidalite, function of DuckDB).
# PostgreSQL 15 gives NULL for `last_value` over a frame without the current row that ends with an excluded row.
OTHERS = [
    ("R", "first_value(v)", None), ("R", "last_value(v)", None), ("R", "nth_value(v, 2)", None), ("I", "row_number()", None), ("I", "rank()", None),
    ("I", "count(DISTINCT v)", None), ("R", "sum(DISTINCT v)", None), ("R", "avg(DISTINCT v)", None), ("R", "median(v)", None), ("I", "count(DISTINCT s)", None),
    ("R", "first_value(v) IGNORE NULLS", "first_value(v IGNORE NULLS)"), ("R", "last_value(v) IGNORE NULLS", "last_value(v IGNORE NULLS)"),
    ("R", "nth_value(v, 2) IGNORE NULLS", "nth_value(v, 2 IGNORE NULLS)"), ("I", "arg_max(i, v)", None), ("I", "arg_min(i, v)", None),
    ("R", "first(v)", None), ("R", "last(v)", None), ("R", "percentile_cont(v, 0.25)", "quantile_cont(v, 0.25)"),
    ("R", "any_value(v) FILTER (WHERE v = 7)", None), ("R", "kurtosis_pop(v)", None),
]


def called(function):
    """`f(x)` over the window x; a function may be an argument of another one."""
    return "array_to_string(array_agg(i) OVER x, ',', '-')" if function.startswith("array_to_string(") else f"{function} OVER x"


def frames():
    """The windows: every kind of bound with every exclusion, the partitions and orders in turn."""
    turn = 0
    for units in ["ROWS", "RANGE", "GROUPS"]:
        for bounds in BOUNDS:
            for exclusion in EXCLUSIONS:
                turn += 1
                # A RANGE with a distance takes one key.
                yield f"({PARTITIONS[turn % 2]}ORDER BY {ORDERS[turn % 3]} {units} BETWEEN {bounds}{' ' if exclusion else ''}{exclusion})"
    for exclusion in EXCLUSIONS[1:]:
        yield f"(ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING {exclusion})"
        yield f"(PARTITION BY g RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW {exclusion})"
        yield f"(ORDER BY k ROWS 1 PRECEDING {exclusion})"


def shown(value, kind):
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind == "R":
        value = float(value)
        if math.isnan(value):
            return "NaN"
        # Halves away from zero, as `round` of SQL.
        return repr(float(decimal.Decimal(value).quantize(decimal.Decimal("0.000001"), decimal.ROUND_HALF_UP)) + 0.0)
    if kind == "I":
        return str(int(value))
    return str(value) or "(empty)"


def query(types, sql, rows):
    lines = sorted([shown(v, t) for v, t in zip(row, types)] for row in rows)
    return f"query {types} rowsort\n{sql}\n----\n" + "".join(" ".join(line) + "\n" for line in lines)


def columns(functions):
    return ["g", "k + 0"] + [f"round({called(f)}::double, 6) + 0" if t == "R" else called(f) for t, f in functions]


def select(columns, window):
    return f"SELECT {', '.join(columns)} FROM f WINDOW x AS {window}"


def both(window):
    """All queries over a window: 0 for PostgreSQL or 1 for DuckDB, the types, Tidalite's text and the other one."""
    for functions in GROUPS:
        types = "IR" + "".join(t for t, _ in functions)
        yield 0, types, select(columns(functions), window), select(["g", "k + 0"] + [called(f) for _, f in functions], window)
    for at in range(0, len(OTHERS), 5):
        yield (1, *of_duckdb(OTHERS[at : at + 5], window))


def of_duckdb(functions, window):
    types = "IR" + "".join(t for t, _, _ in functions)
    # DuckDB has NULL last also for DESC.
    theirs = select(["g", "k + 0"] + [called(theirs or ours) for _, ours, theirs in functions], window.replace("k DESC", "k DESC NULLS FIRST"))
    return types, select(columns([(t, f) for t, f, _ in functions]), window), theirs


def main():
    postgres = psycopg.connect(sys.argv[1], autocommit=True)
    duck = duckdb.connect()
    values = ",\n ".join("(" + ", ".join("NULL" if v is None else str(v) if n == 1 else repr(v) for n, v in enumerate(row)) + ")" for row in ROWS)
    for engine in (postgres, duck):
        theirs = TABLE.replace("DOUBLE", "DOUBLE PRECISION")
        engine.execute("DROP TABLE IF EXISTS f")
        engine.execute(f"CREATE TABLE {theirs}")
        engine.execute(f"INSERT INTO f VALUES {values}")
    parts = [HEADER, f"statement ok\nCREATE TABLE {TABLE}\n", f"statement count {len(ROWS)}\nINSERT INTO f VALUES\n {values}\n"]
    for n, window in enumerate(frames()):
        functions = GROUPS[(n + n // len(EXCLUSIONS)) % len(GROUPS)]
        types = "IR" + "".join(t for t, _ in functions)
        theirs = select(["g", "k + 0"] + [called(f) for _, f in functions], window)
        parts.append(query(types, select(columns(functions), window), postgres.execute(theirs).fetchall()))
        types, sql, theirs = of_duckdb([OTHERS[(5 * n + m) % len(OTHERS)] for m in range(5)], window)
        parts.append(query(types, sql, duck.execute(theirs).fetchall()))
    (pathlib.Path(__file__).parent.parent / "frames.slt").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
