"""The statements that tools send to learn what there is, beside PostgreSQL 15 with the same tables: names and types of
columns and all values are compared. `catalog_statements/` has one file per tool; in it

    -- statement [: what it is for]
    -- differs column, …: why     values of these columns (or `rows`, `types`) are not compared
    -- only …: why                no error is all that is asked
    -- fails: why                  refused as yet, and not compared
    SELECT … {table} …;           the number of a table in pg_class
"""

import decimal
import re
from pathlib import Path

import psycopg
import pytest
from postgres import Postgres, programs

FOLDER = Path(__file__).parent / "catalog_statements"

TABLES = {
    "postgres": """
        create table trades (ts timestamp not null, symbol text, side text, price double precision, amount bigint, venue int, ok boolean, id uuid, note json,
            d date, f real, s smallint, n numeric(18,3), arr double precision[], b bytea);
        create table "Mixed Case" (ts timestamp not null, "Val" double precision);
        create table empty_one (x bigint, y text);
        create table keyed (ts timestamp, k text, v double precision, primary key (ts, k));
        create view v_trades as select ts, symbol, price from trades""",
    "tidalite": """
        create table trades (ts timestamp, symbol text, side text, price double precision, amount bigint, venue int, ok boolean, id uuid, note json,
            d date, f real, s smallint, n numeric(18,3), arr double precision[], b bytea) timestamp(ts) partition by day;
        create table "Mixed Case" (ts timestamp, "Val" double precision) timestamp(ts);
        create table empty_one (x bigint, y text);
        create table keyed (ts timestamp, k text, v double precision, primary key (ts, k)) partition by day;
        create view v_trades as select ts, symbol, price from trades""",
}
ROLE = "admin"


def statements():
    for path in sorted(FOLDER.glob("*.sql")):
        parts = re.split(r"^-- statement\b:?(.*)\n", path.read_text(encoding="utf-8"), flags=re.M)
        for number, (name, body) in enumerate(zip(parts[1::2], parts[2::2]), 1):
            differs, only, fails, sql = set(), False, False, []
            for line in body.strip().splitlines():
                if line.startswith("-- differs "):
                    differs |= {column.strip() for column in line.removeprefix("-- differs ").split(":")[0].split(",")}
                elif line.startswith("-- only"):
                    only = True
                elif line.startswith("-- fails"):
                    fails = True
                else:
                    sql.append(line)
            yield path.stem, number, name.strip(), "\n".join(sql).strip().rstrip(";"), differs, only, fails


class Side:
    """One of the two compared servers."""

    def __init__(self, port, user, tables):
        self.connection = psycopg.connect(host="127.0.0.1", port=port, user=user, dbname="tidalite", autocommit=True)
        for statement in tables.split(";"):
            self.connection.execute(statement)
        known = self.connection.execute("select oid, relname from pg_class where relname in ('trades', 'Mixed Case', 'empty_one', 'keyed', 'keyed_pkey', 'v_trades')").fetchall()
        self.oids = {name: oid for oid, name in known}
        known += self.connection.execute("select oid, 'constraint of ' || conname from pg_constraint where conname = 'keyed_pkey'").fetchall()
        known += self.connection.execute("select oid, 'schema ' || nspname from pg_namespace where nspname = 'information_schema'").fetchall()
        known += self.connection.execute("select oid, 'database' from pg_database where datname = 'tidalite'").fetchall()
        self.objects = {oid: f"<{name}>" for oid, name in known}

    def ask(self, sql):
        """Names, types and rows in text form, with numbers of objects by name."""
        for name, oid in self.oids.items():
            sql = sql.replace("{" + name + "}", str(oid))
        cursor = self.connection.cursor(row_factory=psycopg.rows.tuple_row)
        cursor.execute(sql)
        names = [(column.name, column.type_code) for column in cursor.description]
        rows = [tuple(self.plain(value) for value in row) for row in cursor.fetchall()]
        return names, rows

    def plain(self, value):
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float, decimal.Decimal)):
            return self.objects.get(value, value)
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        text = str(value)
        return re.sub(r"\b\d{5,}\b", lambda found: self.objects.get(int(found[0]), found[0]), text)


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    from server import Server

    if programs() is None:
        pytest.skip("no PostgreSQL on this machine: nothing to compare the catalog with")
    referee = Postgres().start()
    own = Server(tmp_path_factory.mktemp("catalog")).start()
    try:
        with referee.connect() as connection:
            connection.execute(f"create role {ROLE} superuser login")
        yield Side(own.pg_port, ROLE, TABLES["tidalite"]), Side(referee.port, ROLE, TABLES["postgres"])
    finally:
        own.stop()
        referee.stop()


# Expressions of text are text here, and numbers in a statement LONG: docs/semantics.md.
FAMILIES = [{18, 19, 25, 1042, 1043}, {20, 21, 23, 26}, {1009, 1003, 1002, 1015}]
OWNERS = {"tidalite", "admin", "postgres", "pg_database_owner"}


def same_name(ours, theirs):
    """Aliases keep their spelling here, the second column of a name has a number, and expressions are called by their text."""
    return ours.lower() == theirs.lower() or theirs in ("?column?", "case", "rtrim") or re.fullmatch(re.escape(theirs.lower()) + r"\d+", ours.lower()) or ours == "column"


def same_type(ours, theirs):
    return ours == theirs or any(ours in family and theirs in family for family in FAMILIES)


def difference(ours, theirs, differs):
    """Returns a line that describes the first difference, or None if both answers are equal."""
    (our_names, our_rows), (their_names, their_rows) = ours, theirs
    if len(our_names) != len(their_names) or not all(same_name(a, b) for (a, _), (b, _) in zip(our_names, their_names)):
        return f"columns {our_names}, in PostgreSQL {their_names}"
    other = [(a, b) for a, b in zip(our_names, their_names) if not same_type(a[1], b[1]) and b[0] not in differs]
    if "types" not in differs and other:
        return f"types {other}"
    kept = [at for at, (name, _) in enumerate(their_names) if name not in differs]
    plain = lambda value: "<owner>" if isinstance(value, str) and value in OWNERS else value
    key = lambda row: repr([plain(row[at]) for at in kept])
    ours, theirs = sorted(map(key, our_rows)), sorted(map(key, their_rows))
    if "rows" in differs or ours == theirs:
        return None
    more, less = [row for row in ours if row not in theirs], [row for row in theirs if row not in ours]
    return f"{len(ours)} rows, in PostgreSQL {len(theirs)}; only here {more[:3]}; only there {less[:3]}"


@pytest.mark.parametrize("tool", sorted({path.stem for path in FOLDER.glob("*.sql")}))
def test_statements_of(tool, sides):
    own, referee = sides
    wrong = []
    for stem, number, name, sql, differs, only, fails in statements():
        if stem != tool:
            continue
        try:
            ours = own.ask(sql)
        except psycopg.Error as error:
            if not fails:
                wrong.append(f"{tool} {number} {name}: {type(error).__name__} {str(error).splitlines()[0]}")
            continue
        if fails:
            continue
        if only:
            continue
        found = difference(ours, referee.ask(sql), differs)
        if found:
            wrong.append(f"{tool} {number} {name}: {found}")
    assert not wrong, "\n".join(wrong)
