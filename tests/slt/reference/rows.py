"""Writes rows.slt: comparisons of rows and of arrays with NULL within them. The expected rows are those of PostgreSQL 15.

Run by hand when a case is added: `python tests/slt/reference/rows.py "host=… dbname=…"` with psycopg installed and a PostgreSQL 15.
This script does not query Tidalite.
"""

import itertools
import pathlib
import sys

import psycopg

HEADER = """# Rows and arrays with NULL within them: comparisons, sets, joins, order, extremes, sub-queries.
# Written by reference/rows.py: the expected rows are those of PostgreSQL.
"""
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
PAIRS = ["1, NULL", "1, 2", "NULL, 1", "2, 2", "NULL, NULL"]
TRIPLES = ["1, 2, 3", "1, 2, NULL", "1, NULL, 3", "2, NULL, 0"]
ARRAYS = ["1, NULL", "1, 2", "NULL, 1", "NULL", "1", "1, NULL, 2"]
TABLES = [
    "CREATE TABLE p (n INT, x INT, y INT)",
    "INSERT INTO p VALUES (1, 1, NULL), (2, 1, 2), (3, NULL, 1), (4, 2, 2), (5, NULL, NULL), (6, 1, 2)",
]
ARRAY_ROWS = "(VALUES (1, ARRAY[1, NULL]), (2, ARRAY[1, 2]), (3, ARRAY[NULL, 1]), (4, ARRAY[0]), (5, ARRAY[1, NULL]), (6, NULL)) t(n, a)"
NESTED_ROWS = "(VALUES (1, ARRAY[ARRAY[1, NULL]]), (2, ARRAY[ARRAY[1, 2]]), (3, ARRAY[ARRAY[0, 5]]), (4, NULL)) t(n, a)"
TEXT_ROWS = "(VALUES (1, ARRAY['a', NULL]), (2, ARRAY['a', 'b']), (3, ARRAY[NULL, 'b'])) t(n, a)"
DOUBLE_ROWS = "(VALUES (1, ARRAY['NaN'::float8]), (2, ARRAY[NULL::float8]), (3, ARRAY[0.0::float8]), (4, ARRAY[-0.0::float8]), (5, ARRAY[1.0::float8])) t(n, a)"


def statements():
    for kind, rows in (("ROW", PAIRS), ("", TRIPLES)):
        for left, right in itertools.product(rows, repeat=2):
            typed = [", ".join(f"{v}::int" for v in row.split(", ")) for row in (left, right)]
            yield "T" * 6, "SELECT " + ", ".join(f"{kind}({typed[0]}) {op} {kind}({typed[1]})" for op in OPERATORS)
    lists = ["((1, 2), (3, 4))", "((2, 2), (3, 4))", "((1, NULL), (2, 2))", "((NULL, 2), (1, 3))", "((NULL, NULL), (1, 2))"]
    for row, items in itertools.product(["(1, NULL::int)", "(1, 2)", "(5, 5)"], lists):
        yield "TT", f"SELECT {row} IN {items}, {row} NOT IN {items}"
    yield "T", "SELECT ROW(1, 2) BETWEEN ROW(1, NULL::int) AND ROW(2, 2)"
    yield "T", "SELECT ROW(1, 2) NOT BETWEEN ROW(1, 1) AND ROW(1, 3)"
    yield "TT", "SELECT ROW(1, NULL::int) IS DISTINCT FROM ROW(1, NULL::int), ROW(1, NULL::int) IS NOT DISTINCT FROM ROW(1, 2)"
    yield "TTTT", "SELECT ROW(NULL::int, NULL::int) IS NULL, ROW(1, NULL::int) IS NULL, ROW(1, NULL::int) IS NOT NULL, ROW(1, 2) IS NOT NULL"
    yield "TT", "SELECT NOT (1, 2) = (1, NULL), (1, NULL) = (1, NULL) IS NULL"
    yield "TT", "SELECT (1, 'a') < (1, 'b'), (1, timestamp '2024-01-01') < (1, '2024-01-02')"
    yield "TT", "SELECT (1 + 1, 2) = (2, 2), (3 - 2, NULL::int, 3) < (1, 2, 4)"
    # Within a row, and as the value of a column, a row is compared as a whole.
    yield "TT", "SELECT ROW(1, ROW(1, NULL::int)) = ROW(1, ROW(1, NULL::int)), ROW(1, ROW(1, NULL::int)) < ROW(1, ROW(1, 2))"
    values = "(SELECT ROW(1, NULL::int) a, ROW(1, NULL::int) b, ROW(1, 2) c) t"
    yield "T" * 7, f"SELECT a = b, a = c, a < c, a > c, a <= b, a IS NULL, a IS NOT NULL FROM {values}"
    for op in OPERATORS:
        yield "II", f"SELECT a.n, b.n FROM p a JOIN p b ON (a.x, a.y) {op} (b.x, b.y) ORDER BY 1, 2"
        yield "I", f"SELECT n FROM p WHERE (x, y) {op} (1, 2) ORDER BY n"
        yield "I", f"SELECT n FROM p WHERE NOT (x, y) {op} (1, 2) ORDER BY n"
        yield "ITT", f"SELECT n, (x, y) {op} ANY (SELECT 1, 2 UNION ALL SELECT 2, NULL), (x, y) {op} ALL (SELECT 1, 2 UNION ALL SELECT 2, NULL) FROM p ORDER BY n"
        yield "ITT", f"SELECT n, (x, y) {op} (SELECT 1, 2), (x, y) {op} (SELECT 1, 2 WHERE false) FROM p ORDER BY n"
        yield "IT", f"SELECT n, (x, y) {op} (SELECT q.x, q.y FROM p q WHERE q.n = p.n + 1) FROM p ORDER BY n"
    for condition in ["(x, y) IN (SELECT 1, 2)", "(x, y) NOT IN (SELECT 1, 2)", "(x, y) IN ((1, 2), (2, NULL))", "(x, y) NOT IN ((1, 2), (2, NULL))",
                      "(x, y) BETWEEN (1, 1) AND (1, 3)"]:
        yield "I", f"SELECT n FROM p WHERE {condition} ORDER BY n"
        yield "IT", f"SELECT n, {condition} FROM p ORDER BY n"
    many = ", ".join(f"({n}, {n + 1})" for n in range(30))
    yield "ITT", f"SELECT n, (x, y) IN ({many}), (x, y) NOT IN ({many}) FROM p ORDER BY n"
    # Arrays.
    for left, right in itertools.product(ARRAYS, repeat=2):
        a, b = f"ARRAY[{left}]::int[]", f"ARRAY[{right}]::int[]"
        yield "T" * 9, "SELECT " + ", ".join(f"{a} {op} {b}" for op in OPERATORS + ["@>", "<@", "&&"])
    yield "TTT", "SELECT '{}'::int[] <@ ARRAY[NULL::int], ARRAY[NULL::int] @> '{}'::int[], ARRAY[NULL::int] && '{}'::int[]"
    yield "TTT", "SELECT NULL::int[] @> ARRAY[1], ARRAY[1] <@ NULL::int[], NULL::int[] && ARRAY[1]"
    yield "ITTT", f"SELECT n, a @> ARRAY[NULL::int], a <@ ARRAY[1, NULL], a && ARRAY[NULL, 2] FROM {ARRAY_ROWS} ORDER BY n"
    yield "TT", "SELECT greatest(ARRAY[1, NULL], ARRAY[1, 2]) = ARRAY[1, NULL], least(ARRAY[1, NULL], NULL, ARRAY[1, 2]) = ARRAY[1, 2]"
    yield "TT", "SELECT ARRAY[1, NULL] BETWEEN ARRAY[1, 1] AND ARRAY[1, 5], ARRAY[1, NULL] NOT BETWEEN ARRAY[1, 1] AND ARRAY[1, 5]"
    for rows in (ARRAY_ROWS, NESTED_ROWS, TEXT_ROWS, DOUBLE_ROWS):
        yield "II", f"SELECT n, dense_rank() OVER (ORDER BY a) FROM {rows} ORDER BY 1"
        yield "II", f"SELECT n, dense_rank() OVER (ORDER BY a DESC) FROM {rows} ORDER BY 1"
        yield "II", f"SELECT min(n), max(n) FROM {rows} GROUP BY a ORDER BY a, 1"
        extreme = f"(SELECT max(a) AS hi, min(a) AS lo FROM {rows}) e"
        yield "II", f"SELECT min(n) FILTER (WHERE a = lo), max(n) FILTER (WHERE a = hi) FROM {rows}, {extreme}"
        yield "III", f"SELECT n, (SELECT count(*) FROM {rows.replace(' t(n, a)', ' u(m, b)')} WHERE b < a), (SELECT min(m) FROM {rows.replace(' t(n, a)', ' u(m, b)')} WHERE b = a) FROM {rows} ORDER BY n"
        yield "II", f"SELECT t.n, m FROM {rows} JOIN {rows.replace(' t(n, a)', ' u(m, b)')} ON a >= b ORDER BY 1, 2"
        yield "IT", f"SELECT n, a <= ALL (SELECT b FROM {rows.replace(' t(n, a)', ' u(m, b)')} WHERE b IS NOT NULL) FROM {rows} ORDER BY n"
        window = "(ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
        yield "IT", f"SELECT n, max(a) OVER {window} = a FROM {rows} ORDER BY n"
    for rows in (ARRAY_ROWS, NESTED_ROWS, "(VALUES (1, ROW(1, NULL::int)), (2, ROW(1, 2)), (3, NULL), (4, ROW(NULL::int, 1)), (5, ROW(0, 0))) t(n, a)"):
        for order in ["a NULLS FIRST, n", "a DESC NULLS LAST, n", "a DESC, n", "a, n DESC", "n % 2, a NULLS FIRST"]:
            yield "I", f"SELECT n FROM {rows} ORDER BY {order}"
            yield "I", f"SELECT n FROM {rows} ORDER BY {order} LIMIT 3"
            yield "T", f"SELECT array_to_string(array_agg(n ORDER BY {order}), ',') FROM {rows}"
            yield "II", f"SELECT n, rank() OVER (ORDER BY {order}) FROM {rows} ORDER BY n"
        yield "II", f"SELECT DISTINCT ON (n % 2) n % 2, n FROM {rows} ORDER BY n % 2, a DESC NULLS LAST, n"
        yield "III", f"SELECT n, count(*) OVER (ORDER BY a NULLS FIRST), count(*) OVER (ORDER BY a DESC NULLS LAST GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM {rows} ORDER BY n"
    # A row among the rows of an array is compared as a whole, unlike one among the rows of a list.
    for row in ("1, NULL::int", "1, 2", "3, 3"):
        for items in ("ROW(1, NULL::int)", "ROW(1, 2), ROW(1, NULL::int)", "ROW(2, 1)"):
            yield "TT", f"SELECT ROW({row}) = ANY (ARRAY[{items}]), ROW({row}) <> ALL (ARRAY[{items}])"
    # Scalar sub-queries that are correlated by an array or a row.
    outer, inner = "(VALUES (1, ARRAY[1, 2]), (2, ARRAY[1, NULL]), (3, NULL)) u(n, b)", "(VALUES (1, ARRAY[1, 2]), (2, ARRAY[1, NULL])) t(x, a)"
    for value, condition in [("count(*)", "a @> b"), ("count(*)", "a <@ b"), ("count(*)", "a && b"), ("max(x)", "a = b"), ("sum(x)", "a < b"), ("min(x)", "a >= b"),
                             ("count(*)", "x = ANY (b)"), ("count(*)", "x > ALL (b)"), ("count(*)", "a IS NOT DISTINCT FROM b"), ("count(*)", "b IS NULL")]:
        yield "II", f"SELECT n, (SELECT {value} FROM {inner} WHERE {condition}) FROM {outer} ORDER BY n"
    yield "II", f"SELECT n, (SELECT x FROM {inner} WHERE a @> b ORDER BY x LIMIT 1) FROM {outer} ORDER BY n"
    outer = "(VALUES (1, ROW(1, 2)), (2, ROW(1, 3)), (3, ROW(1, NULL::int))) u(n, r)"
    for condition in ["ROW(x, y) = r", "ROW(x, y) >= r", "ROW(x, y) IS NOT DISTINCT FROM r", "r IS NOT NULL"]:
        yield "IIT", f"SELECT n, (SELECT count(*) FROM (VALUES (1, 2), (1, NULL)) t(x, y) WHERE {condition}), EXISTS (SELECT 1 FROM (VALUES (1, 2)) t(x, y) WHERE {condition}) FROM {outer} ORDER BY n"
    yield "IT", f"SELECT n, r IN (SELECT ROW(x, y) FROM (VALUES (1, 2), (1, NULL)) t(x, y)) FROM {outer} ORDER BY n"
    yield "T", f"SELECT mode() WITHIN GROUP (ORDER BY a) = ARRAY['a', 'b'] FROM {TEXT_ROWS}"
    yield "TT", "SELECT nullif(ROW(1, NULL::int), ROW(1, NULL::int)) IS NULL, nullif(ROW(1, 2), ROW(1, 3)) IS NULL"


def shown(value):
    if value is None:
        return "NULL"
    return {"t": "true", "f": "false"}.get(value, value) or "(empty)"


def main():
    connection = psycopg.connect(sys.argv[1], autocommit=True)
    connection.execute("DROP TABLE IF EXISTS p")
    parts = [HEADER]
    for sql in TABLES:
        connection.execute(sql)
        parts.append(f"statement ok\n{sql}\n")
    for types, sql in statements():
        result = connection.pgconn.exec_(sql.encode())
        assert not result.error_message, (sql, result.error_message)
        rows = [" ".join(shown(v and v.decode()) for v in (result.get_value(r, c) for c in range(result.nfields))) for r in range(result.ntuples)]
        parts.append(f"query {types}\n{sql}\n----\n" + "".join(f"{row}\n" for row in rows))
    (pathlib.Path(__file__).parent.parent / "rows.slt").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
