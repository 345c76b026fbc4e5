"""Writes number_types.slt: INT, DECIMAL and DOUBLE in every order in constructs that choose or compare values.

Run by hand when a case is added: `python tests/slt/reference/number_types.py "host=… dbname=…"` with psycopg installed and a
PostgreSQL 15. The expected rows are those of PostgreSQL; this script does not query Tidalite.
"""

import itertools
import pathlib
import sys

import psycopg

HEADER = """# INT, DECIMAL and DOUBLE in every order in CASE, functions, lists, arrays, VALUES, set operations and joins: the common
# type is DOUBLE if one of them is.
# Written by reference/number_types.py: the expected rows are those of PostgreSQL.
"""
FLOAT8, BOOLEAN = 701, 16
TABLES = [
    "CREATE TABLE nt (k INT, i INT, d NUMERIC(10, 2), f DOUBLE PRECISION)",
    "INSERT INTO nt VALUES (1, 1, 2.5, 1e-20), (2, 1, 0, 1e-20), (3, 0, 2.5, 'NaN'), (4, -1, 0, 'Infinity'), (5, 7, 2.5, 1e300), "
    "(6, 2, 2.5, 2.5), (7, NULL, NULL, 1e-20), (8, 3, 0.5, -1e-20), (9, 0, 1.25, NULL)",
]
# No conversion to DECIMAL keeps these values.
DOUBLES = ["1e-20::float8", "'NaN'::float8", "'Infinity'::float8", "1e300::float8"]
DECIMALS = ["0::numeric", "2.5::numeric(10, 2)"]
# Expressions of three values.
CHOICES = [
    "CASE k % 3 WHEN 0 THEN {0} WHEN 1 THEN {1} ELSE {2} END",
    "CASE WHEN k % 3 = 0 THEN {0} ELSE CASE WHEN k % 3 = 1 THEN {1} ELSE {2} END END",
    "CASE WHEN k % 3 = 0 THEN CASE WHEN k < 4 THEN {0} ELSE {1} END ELSE {2} END",
    "coalesce(CASE WHEN k % 3 = 0 THEN {0} END, CASE WHEN k % 3 = 1 THEN {1} END, {2})",
    "coalesce(CASE WHEN k % 3 = 0 THEN NULL WHEN k < 4 THEN {0} ELSE {1} END, {2})",
    "greatest({0}, {1}, {2})",
    "least({0}, {1}, {2})",
    "greatest(coalesce({0}, {1}), {2})",
    "least(CASE WHEN k < 4 THEN {0} ELSE {1} END, {2})",
    "nullif(nullif({0}, {1}), {2})",
    "(ARRAY[{0}, {1}, {2}])[k % 3 + 1]",
    "(ARRAY[coalesce({0}, {1}), {2}])[k % 2 + 1]",
    "(ARRAY[CASE WHEN k < 4 THEN {0} ELSE {1} END, {2}])[k % 2 + 1]",
    "lag(CASE WHEN k < 4 THEN {0} ELSE {1} END, 3, {2}) OVER (ORDER BY k)",
    "CASE WHEN k < 4 THEN {0} ELSE {1} END + {2}",
]
CONDITIONS = [
    "{0} IN ({1}, {2})",
    "{0} NOT IN ({1}, {2})",
    "CASE {0} WHEN {1} THEN 'second' WHEN {2} THEN 'third' ELSE 'none' END",
    "CASE CASE WHEN k < 4 THEN {0} ELSE {1} END WHEN {2} THEN 'third' ELSE 'none' END",
    "{0} BETWEEN {1} AND {2}",
    "{0} = ANY (ARRAY[{1}, {2}])",
    "{0} < ALL (ARRAY[{1}, {2}])",
    "CASE WHEN k < 4 THEN {0} ELSE {1} END < {2}",
    "CASE WHEN k < 4 THEN {0} ELSE {1} END IS DISTINCT FROM {2}",
    "coalesce({0}, {1}) = {2}",
    "{0} IN (SELECT {1} UNION ALL SELECT {2})",
]
# The values of sub-queries that are no constants.
SUBQUERIES = ["{0} IN (SELECT n.{1} FROM nt n)", "{0} NOT IN (SELECT n.{1} FROM nt n WHERE n.{1} IS NOT NULL)", "{0} <= ALL (SELECT n.{1} FROM nt n WHERE n.{1} IS NOT NULL)",
              "{0} > ANY (SELECT n.{1} FROM nt n UNION ALL SELECT n.{2} FROM nt n)", "{0} = (SELECT max(n.{1}) FROM nt n)"]
PAIRS = ["{0} = {1}", "{0} < {1}", "{0} IS DISTINCT FROM {1}", "nullif({0}, {1})", "coalesce({0}, {1})", "{0} + {1}", "{0} * {1}", "lag({0}, 1, {1}) OVER (ORDER BY k)"]
# A volatile value is evaluated once.
VOLATILE = ["CASE {0} + (random() * 0)::numeric(10, 2) WHEN {1} THEN 'second' WHEN {2} THEN 'third' ELSE 'none' END",
            "{0} + (random() * 0)::numeric(10, 2) IN ({1}, {2})", "{0} + (random() * 0)::numeric(10, 2) BETWEEN {1} AND {2}"]
# Decimals with more digits than a double.
LONG = "(VALUES (1, 0.1234567890123456789::numeric(20, 19), 0.1234567890123456788::numeric(20, 19), 5::float8)) t(k, a, b, f)"
LONGS = ["a IN (0.1234567890123456788::numeric(20, 19), 5::float8)", "a IN (0.1234567890123456788::numeric(20, 19), f)", "a IN (b, f)", "a IN (b, 5::float8)", "a = b::float8",
         "a = 0.1234567890123456788::numeric(20, 19)::float8", "a > 0.1234567890123456788", "CASE a WHEN b THEN 1 WHEN b::float8 THEN 2 ELSE 3 END"]
MEMBERS = ["SELECT {0} AS v FROM nt WHERE k < 4", "SELECT {1} FROM nt WHERE k > 2 AND k < 6", "SELECT {2} FROM nt WHERE k > 5"]
SETS = ["{0} UNION ALL {1} UNION ALL {2}", "{0} UNION {1} UNION {2}", "{0} UNION ALL ({1} UNION ALL {2})", "{0} UNION {1} EXCEPT {2}", "{0} INTERSECT {1} UNION {2}"]


def queries():
    """The queries, each with a comment or None."""
    orders = list(itertools.permutations("idf"))
    for part in (CHOICES[:5], CHOICES[5:10], CHOICES[10:], CONDITIONS[:4], CONDITIONS[4:7], CONDITIONS[7:10], SUBQUERIES):
        for order in orders:
            yield f"Columns: {', '.join(order)}.", f"SELECT k, {', '.join(form.format(*order) for form in part)} FROM nt ORDER BY k"
    for pair in itertools.permutations("df"):
        yield f"Columns: {', '.join(pair)}.", f"SELECT k, {', '.join(form.format(*pair) for form in PAIRS)} FROM nt ORDER BY k"
    for form in CHOICES + CONDITIONS:
        for decimal in DECIMALS:
            items = [form.format(*order) for double in DOUBLES for order in itertools.permutations(["1", decimal, double])]
            # One value of `k` for each branch.
            yield "Constants.", f"SELECT {', '.join(items)} FROM nt WHERE k IN (3, 4, 5) ORDER BY k"
    for order in orders:
        members = [member.format(*order) for member in MEMBERS]
        for form in SETS:
            yield None, f"SELECT v FROM ({form.format(*members)}) s ORDER BY 1"
        yield None, f"SELECT v + 0::numeric, nullif(v, 0), coalesce(v, 0::numeric) FROM ({SETS[0].format(*members)}) s ORDER BY v"
        yield None, f"SELECT a.k, b.k FROM nt a JOIN nt b ON a.{order[0]} = b.{order[1]} AND a.{order[2]} IS NOT NULL ORDER BY 1, 2"
        chain = " UNION ALL ".join(f"SELECT {order[min(at // 7, 2)]} AS v FROM nt WHERE k = {at % 9 + 1}" for at in range(19))
        yield None, f"SELECT v FROM ({chain}) s ORDER BY 1"
    yield "A volatile value.", f"SELECT k, {', '.join(form.format(*order) for form in VOLATILE for order in ('dfi', 'dif'))} FROM nt ORDER BY k"
    yield "All values of a list without columns have one type; columns are compared alone.", f"SELECT {', '.join(LONGS)} FROM {LONG}"
    for a, b in itertools.permutations(["coalesce(i, d, f)", "d", "CASE WHEN k < 4 THEN i ELSE d END", "f"], 2):
        if "f" not in a + b:
            continue
        yield None, f"SELECT v FROM (SELECT {a} AS v FROM nt WHERE k < 5 UNION ALL SELECT {b} FROM nt WHERE k > 5) s WHERE v > -1 ORDER BY 1"
        yield None, f"SELECT v FROM (SELECT {a} AS v FROM nt INTERSECT SELECT {b} FROM nt) s ORDER BY 1"
    for a, b in itertools.permutations("df"):
        yield None, f"SELECT v FROM (SELECT {a} AS v FROM nt) a JOIN (SELECT {b} AS v FROM nt) b USING (v) ORDER BY 1"
        yield None, f"SELECT v FROM (SELECT {a} AS v FROM nt) a FULL JOIN (SELECT {b} AS v FROM nt) b USING (v) ORDER BY 1"
    for decimal in DECIMALS:
        for double in DOUBLES:
            for a, b, c in itertools.permutations(["1", decimal, double]):
                yield None, f"SELECT v FROM (VALUES ({a}), ({b}), ({c})) s(v) ORDER BY 1"
        for a, b, c in itertools.permutations(["1", decimal, DOUBLES[0]]):
            yield None, f"SELECT v FROM (SELECT {a} AS v UNION ALL SELECT {b} UNION ALL SELECT {c}) s ORDER BY 1"
            yield None, f"SELECT v FROM (VALUES (coalesce({a}, {b})), ({c})) s(v) ORDER BY 1"
            yield None, f"SELECT k, (SELECT max(v) FROM (VALUES ({a}), (nt.d), (nt.f), ({c})) s(v)) FROM nt ORDER BY k"


def shown(oid, value):
    """A value of PostgreSQL's text protocol as the files have it."""
    if value is None:
        return "NULL"
    if oid == BOOLEAN:
        return "true" if value == "t" else "false"
    if oid == FLOAT8:
        return "NaN" if value == "NaN" else repr(float(value)).replace("e-0", "e-").replace("e+", "e")
    return value


def main():
    connection = psycopg.connect(sys.argv[1], autocommit=True)
    connection.execute("CREATE SCHEMA IF NOT EXISTS number_types; SET search_path = number_types; DROP TABLE IF EXISTS nt")
    parts = [HEADER]
    for sql in TABLES:
        connection.execute(sql)
        parts.append(f"statement ok\n{sql}\n")
    for comment, sql in queries():
        result = connection.pgconn.exec_(sql.encode())
        if result.error_message:
            print("refused by PostgreSQL:", sql, result.error_message.decode())
            continue
        rows = [" ".join(shown(result.ftype(c), v and v.decode()) for c in range(result.nfields) for v in [result.get_value(r, c)]) for r in range(result.ntuples)]
        note = f"# {comment}\n" if comment else ""
        types = "".join({BOOLEAN: "B", FLOAT8: "R", 23: "I"}.get(result.ftype(c), "T") for c in range(result.nfields))
        parts.append(f"{note}query {types}\n{sql}\n----\n" + "\n".join(rows) + "\n")
    connection.execute("DROP SCHEMA number_types CASCADE")
    path = pathlib.Path(__file__).parent.parent / "number_types.slt"
    path.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
