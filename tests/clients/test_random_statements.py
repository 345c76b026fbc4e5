"""Random statements of all clauses beside PostgreSQL: as text, prepared, with parameters and over HTTP, with fast operators
and without, over merged and staged rows.

`RANDOM_STATEMENTS=100000 RANDOM_SEED=7 pytest -s --timeout=0 test_random_statements.py` compares more and others; the seed is
printed. Statements come in rounds of 100, each with tables of its own, of the seed and those
after it. With `RANDOM_FINDINGS=file` differences are written there and the rest is compared, too.
"""

import collections
import dataclasses
import json
import os
import random
import re
import time

import pytest
from open_kinds import statement_kind
from postgres import Postgres, programs
from random_shapes import CHANGED, KEYED, Shapes
from random_statements import COLUMNS
from reduce_statement import reduced
from referees import BOOL, FLOATS, TEXT, Answer, Link, difference
from server import SqlError

# Other seeds still find kinds that `open_kinds.py` does not list: the day becomes the seed when a week of days passes.
SEED = 20261128
ROUND, CHUNK = 100, 50
CI_SECONDS = 30
"""On a busy machine fewer statements are compared."""
SIZES = {"q0": 0, "q1": 1, "q2": 5, "q3": 9, "q4": 14}
TIMED = {"q3": "DAY", "q4": "MONTH", CHANGED: "DAY", KEYED: "DAY"}
"""Tables with a designated timestamp."""
SETTINGS = [{}, {"TIDALITE_QUERY_FAST_OPERATORS": "false"}]
HTTP_TYPES = {"BOOLEAN": BOOL, "SHORT": 21, "INT": 23, "LONG": 20, "FLOAT": 700, "DOUBLE": 701, "DATE": 1082, "TIMESTAMP": 1114, "INTERVAL": 1186, "UUID": 2950, "ARRAY": 1022, "BYTE": 21}
ZONED_TIME = re.compile(r"(\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?Z$")


def text_of_json(value, oid):
    """A value of /exec as PostgreSQL writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        return "{" + ",".join("NULL" if part is None else str(part) for part in value) + "}"
    text = str(value)
    if found := ZONED_TIME.match(text):
        fraction = (found[3] or "").rstrip("0")
        return found[1] if oid == 1082 else f"{found[1]} {found[2]}{'.' + fraction if fraction else ''}"
    return text


def ask_over_http(server, sql):
    try:
        answer = server.exec(sql, quoteNotFinite="true")
    except SqlError as error:
        return Answer(state="http", message=json.dumps(error.answer))
    of_type = lambda name: 1700 if name.startswith("DECIMAL") else 1022 if name.startswith("ARRAY") or name.endswith("[]") else HTTP_TYPES.get(name, TEXT)
    types = [of_type(column["type"]) for column in answer.get("columns", [])]
    return Answer([tuple(map(text_of_json, row, types)) for row in answer.get("dataset", [])], types)


class Engines:
    def __init__(self, servers, postgres):
        self.servers = servers
        self.links = [Link(server.pg_port) for server in servers]
        self.postgres = Link(postgres.port, postgres.USER, postgres.DATABASE)

    def prepare(self, r, is_wild):
        """New tables; some rows are merged, some staged."""
        maker = Shapes(r, list(SIZES), is_wild)
        for name, count in {**SIZES, CHANGED: 0, KEYED: 0}.items():
            clause = f" TIMESTAMP(ts) PARTITION BY {TIMED[name]}" if name in TIMED else ""
            clause += " DEDUP UPSERT KEYS(ts, id)" if name == KEYED else ""
            inserts = [maker.insert_of(name, first, min(6, count - first)) for first in range(0, count, 6)]
            for link in [*self.links, self.postgres]:
                columns = ", ".join(f"{column} {of[2 if link is self.postgres else 1]}" for column, of in COLUMNS.items())
                key = ", PRIMARY KEY (id, ts)" if name == KEYED and link is self.postgres else ""
                link.must(f"DROP TABLE IF EXISTS {name}")
                link.must(f"CREATE TABLE {name} ({columns}{key}){'' if link is self.postgres else clause}")
                for number, insert in enumerate(inserts):
                    link.must(insert)
                    if link is not self.postgres and name in TIMED and number == 0:
                        link.must(f"ALTER TABLE {name} SEAL")
        return maker

    @staticmethod
    def restored(statement):
        """Statements that give the changed table its rows."""
        if not statement.changes:
            return []
        columns = f"(id, ts, i, v) SELECT id, timestamp '2024-03-31', i, v FROM {statement.source} WHERE id % 2 = 0" if statement.changes == KEYED else f"SELECT * FROM {statement.source}"
        return [f"DELETE FROM {statement.changes}", f"INSERT INTO {statement.changes} {columns}"]

    def answers(self, link, statements, spelled):
        """For each statement its answer and, if it changes a table, the rows of the table; all are sent at once."""
        lists = [[*self.restored(one), spelled(one), *([f"SELECT * FROM {one.changes}"] if one.changes else [])] for one in statements]
        answers = iter(link.ask_all([sql for one in lists for sql in one]))
        out = []
        for one, sqls in zip(statements, lists):
            got = [next(answers) for _ in sqls]
            assert not any(answer.is_error for answer in got[:-2]), got
            out.append(got[len(self.restored(one)):])
        return out

    def alone(self, link, statement, ask):
        """The same for one statement, by another way."""
        for sql in self.restored(statement):
            link.must(sql)
        answer = ask()
        return [answer] + ([link.ask(f"SELECT * FROM {statement.changes}")] if statement.changes else [])

    def ways(self):
        link, server = self.links[0], self.servers[0]
        return {
            "simple": lambda s: self.alone(link, s, lambda: link.ask(s.text)),
            "prepared": lambda s: self.alone(link, s, lambda: link.ask_prepared(s.text)),
            "http": lambda s: self.alone(link, s, lambda: ask_over_http(server, s.text)),
        }


def compared(found, expected, statement, way):
    """Describes the difference of two lists of answers, or returns None."""
    if found[0].is_error:
        return f"{found[0].state} {found[0].message.splitlines()[0][:300]}, due: {expected[0].rows[:5]}"
    for answer, due in zip(found, expected):
        if way == "http" and statement.changes and answer is found[0]:
            continue
        if wrong := difference(answer, due, statement.is_ordered):
            return wrong
    return None


class Round:
    def __init__(self, engines, seed, count):
        self.engines, self.seed, self.count = engines, seed, count
        self.statements, self.answers = 0, 0
        self.refused, self.findings, self.known = collections.Counter(), [], collections.Counter()
        self.first = None
        """The statement, way and difference of the first finding."""

    def run(self):
        r = random.Random(self.seed)
        maker = self.engines.prepare(r, is_wild=self.seed % 3 == 0)
        for at in range(0, self.count, CHUNK):
            self.ask(r, at, [maker.statement() for _ in range(min(CHUNK, self.count - at))])
        return self

    def ask(self, r, at, statements):
        """Statements in several ways; the first difference of a statement is told."""
        engines, text = self.engines, lambda one: one.text
        expected = engines.answers(engines.postgres, statements, text)
        found = engines.answers(engines.links[0], statements, text)
        known = []
        for number, (statement, answer, due) in enumerate(zip(statements, found, expected)):
            if due[0].is_error:
                self.refused[due[0].state] += 1
                if answer[0].is_internal:
                    self.tell(at + number, statement, "text", answer[0].message, due)
            elif self.settle(at + number, statement, "text", answer, due):
                known.append((number, statement, due))
        self.statements += sum(not due[0].is_error for due in expected)
        for way, link, spelled, share in (("text without fast operators", engines.links[1], text, 0.3), ("parameters", engines.links[0], lambda one: one.bound, 0.2)):
            chosen = [one for one in known if r.random() < share]
            dues = [due for *_, due in chosen]
            if way == "parameters":
                dues = engines.answers(engines.postgres, [statement for _, statement, _ in chosen], spelled)
            for (number, statement, _), answer, due in zip(chosen, engines.answers(link, [statement for _, statement, _ in chosen], spelled), dues):
                if not due[0].is_error:
                    self.settle(at + number, statement, way, answer, due)
        for number, statement, due in (one for one in known if r.random() < 0.08):
            way, ask = r.choice(list(engines.ways().items()))
            self.settle(at + number, statement, way, ask(statement), due)

    def settle(self, number, statement, way, answer, due):
        """Returns whether the answer is the right one."""
        self.answers += 1
        wrong = compared(answer, due, statement, way)
        if wrong:
            self.tell(number, statement, way, wrong, due)
        return not wrong

    def tell(self, number, statement, way, wrong, due):
        if kind := statement_kind(statement, wrong):
            self.known[kind] += 1
            return
        self.first = self.first or (statement, way, wrong)
        changes = f"\n  changes {statement.changes}, a copy of {statement.source}" if statement.changes else ""
        self.findings.append(f"RANDOM_SEED={self.seed} statement {number} {statement.shape} by {way}\n{statement.text}\n  {wrong[:900]}{changes}")


    def minimal(self):
        """The first finding, reduced while the SQLSTATE stays, or while the rows differ. Tables are those of the round."""
        statement, way, wrong = self.first
        engines, text = self.engines, lambda one: one.text
        link = engines.links["without" in way]
        is_error = re.match(r"[0-9A-Z]{5} ", wrong)

        def differs(candidate):
            one = dataclasses.replace(statement, text=candidate)
            if statement.changes and statement.changes not in candidate:
                return False
            due = engines.answers(engines.postgres, [one], text)[0]
            if due[0].is_error:
                return False
            found = compared(engines.answers(link, [one], text)[0], due, one, "text")
            return bool(found) and (found[:6] == wrong[:6] if is_error else not re.match(r"[0-9A-Z]{5} ", found))
        return reduced(statement.text, differs) if differs(statement.text) else "(differs only by " + way + ")"


def test_random_statements_beside_postgres(servers):
    if programs() is None:
        pytest.skip("there is no PostgreSQL server here (initdb and postgres, package postgresql-15)")
    seed = int(os.environ.get("RANDOM_SEED") or SEED)
    count, path = int(os.environ.get("RANDOM_STATEMENTS") or 800), os.environ.get("RANDOM_FINDINGS")
    postgres = Postgres().start()
    try:
        engines = Engines([servers(env={"TIDALITE_QUERY_TIMEOUT": "20s", **settings}).start() for settings in SETTINGS], postgres)
        engines.postgres.must("SET statement_timeout = '5s'")
        statements, answers, findings, refused, known, started = 0, 0, 0, collections.Counter(), collections.Counter(), time.monotonic()
        for at in range(0, count, ROUND):
            if not os.environ.get("RANDOM_STATEMENTS") and time.monotonic() - started > CI_SECONDS:
                break
            done = Round(engines, seed + at // ROUND, min(ROUND, count - at)).run()
            statements, answers, refused, known = statements + done.statements, answers + done.answers, refused + done.refused, known + done.known
            findings += len(done.findings)
            if done.findings and not path:
                pytest.fail("\n\n".join(done.findings[:5]) + "\n\nthe first one, reduced: " + done.minimal())
            if done.findings:
                with open(path, "a") as file:
                    file.write("\n\n".join(done.findings) + "\n\n")
            print(f"seed {seed} to {seed + at // ROUND}: {statements} statements and {answers} answers compared, {findings} differ, {known.total()} of open kinds, {refused.total()} refused by PostgreSQL, {statements / (time.monotonic() - started):.0f}/s", flush=True)
        assert not findings
        assert statements > refused.total() * 4, f"only {statements} statements ran in PostgreSQL: {refused}"
        for server in engines.servers:
            assert server.stop() == 0
    finally:
        postgres.stop()
