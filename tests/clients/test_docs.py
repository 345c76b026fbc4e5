"""The examples of the documentation run as they stand there, and give what stands beside them.

Every block of SQL in docs/*.md is run in order on a server with the demo's data, a fresh one for each page. What follows
a statement on its line as a comment is its answer: rows with `;` between them, values with `, `. Blocks of `text` are
grammars and are not run. Statements go over HTTP, those of the page about the PostgreSQL protocol over that.
"""

import re
from pathlib import Path

import psycopg
import pytest
from server import Server, SqlError, eventually

DOCS = Path(__file__).parent.parent.parent / "docs"
# Statements that do something to the machine beside the database.
NOT_HERE = ("BACKUP", "SELECT station", "SELECT count() FROM read_parquet", "INSERT INTO trades SELECT * FROM read_parquet")


class Demo(Server):
    def command(self):
        return ["demo" if word == "serve" else word for word in super().command()]


def blocks(text):
    """(line, statement, answer or None)"""
    for found in re.finditer(r"^```sql\n(.*?)^```", text, re.M | re.S):
        first = text[: found.start()].count("\n") + 2
        statement, start = [], None
        for number, line in enumerate(found.group(1).split("\n")):
            code, _, comment = line.partition("--")
            if not statement and not code.strip():
                continue
            start = first + number if not statement else start
            statement.append(code.rstrip())
            if code.rstrip().endswith(";"):
                yield start, "\n".join(statement).rstrip(";"), comment.strip() or None
                statement = []
        assert not "".join(statement).strip(), f"line {start}: a statement without a semicolon"


def shown(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    text = "NULL" if value is None else str(value)
    # Times without what is zero at their end.
    return re.sub(r"(:00)?(\.0+)?Z$", "", text) if re.match(r"\d{4}-\d\d-\d\dT", text) else text


@pytest.mark.parametrize("page", sorted(p.name for p in DOCS.glob("**/*.md") if "```sql" in p.read_text()))
def test_examples_of_the_docs_hold(page, tmp_path):
    path = next(DOCS.glob(f"**/{page}"))
    server = Demo(tmp_path / "demo").start()
    try:
        eventually(lambda: has(server, "cpu") and has(server, "readings"), 60, "the demo's data")
        connection = pgwire(server) if page in ("pgwire.md", "transactions.md") else None
        problems = []
        for line, statement, answer in blocks(path.read_text()):
            if statement.lstrip().startswith(NOT_HERE):
                continue
            try:
                rows = over_pgwire(connection, statement) if connection else server.exec(statement).get("dataset", [])
            except (SqlError, psycopg.Error) as error:
                problems.append(f"{page}:{line}: {statement}\n  {error}")
                continue
            found = "; ".join(", ".join(map(shown, row)) for row in rows)
            if answer is not None and found != answer:
                problems.append(f"{page}:{line}: {statement}\n  found {found}\n  said  {answer}")
        assert not problems, f"{len(problems)} examples:\n\n" + "\n\n".join(problems)
    finally:
        server.stop()


def pgwire(server):
    return psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True)


def over_pgwire(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement.encode(), prepare=False)
        return cursor.fetchall() if cursor.description else []


def has(server, table):
    try:
        return server.value(f"select count() from {table}") > 0
    except SqlError:
        return False
