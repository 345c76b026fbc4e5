"""Types with their edge values, and the comparison of expressions over them with PostgreSQL.

`Edges(ours, postgres)` fills one table for each type in both databases. `compare(expressions, types)` evaluates
expressions of the columns `a`, `b`, `c` over all combinations of values. Each cell has one of four outcomes: the same,
another value, an error where PostgreSQL answers, an answer where PostgreSQL raises an error. PostgreSQL evaluates a column
at once, and row by row if a row raises an error. Tidalite evaluates many columns at once, and less if there is an error.
"""

import dataclasses
import re
from dataclasses import dataclass, field

from referees import same_cells

# Name in PostgreSQL's catalog: (type in Tidalite, type in PostgreSQL, values as texts).
TIMES = ["0001-01-01 00:00:00", "1677-09-21 00:12:43.145224", "1677-09-21 00:12:43.145225", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2000-02-29 12:34:56.123456",
         "2024-03-31 01:30:00", "2262-04-11 23:47:16.854775", "2262-04-11 23:47:16.854776", "9999-12-31 23:59:59.999999"]
TYPES = {
    "bool": ("BOOLEAN", "boolean", ["true", "false"]),
    "int2": ("SHORT", "smallint", ["0", "1", "-1", "3", "-32768", "32767"]),
    "int4": ("INT", "integer", ["0", "1", "-1", "2", "5", "-2147483648", "2147483647"]),
    "int8": ("LONG", "bigint", ["0", "1", "-1", "3", "2147483648", "-2147483649", "9007199254740993", "-9223372036854775808", "9223372036854775807"]),
    "float4": ("REAL", "real", ["0", "-0", "1.5", "-2.5", "0.1", "NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45", "16777216"]),
    "float8": ("DOUBLE", "double precision", ["0", "-0", "1", "1.5", "-2.5", "0.1", "NaN", "Infinity", "-Infinity", "1.7976931348623157e308", "5e-324", "9223372036854775808", "-9223372036854775808",
                                              "2147483647.5", "32767.5", "1e15", "1e16", "123456.789"]),
    "numeric": ("DECIMAL(12,3)", "numeric(12,3)", ["0", "1", "1.5", "-0.001", "2.5", "-2.5", "999999999.999", "-999999999.999"]),
    "numeric38": ("DECIMAL(38,10)", "numeric(38,10)", ["0", "0.0000000001", "-0.5", "12345678901234567890.1234567891", "9999999999999999999999999999.9999999999"]),
    "text": ("VARCHAR", "text", ["", " ", "a", "abc", "12", "-1.5", "true", "NaN", "2024-02-29", "2024-02-29 12:34:56.789012", "é日本😀", "1e3", " 7 ", "1 day", "9223372036854775808", "{1,2}", "it's", "a%b_c\\d",
                                 "11111111-2222-3333-4444-555555555555", "\\x00ff", "day", "UTC"]),
    "timestamp": ("TIMESTAMP", "timestamp", TIMES),
    "date": ("DATE", "date", ["0001-01-01", "1677-09-21", "1969-12-31", "1970-01-01", "2000-02-29", "2024-01-31", "2262-04-11", "2262-04-12", "9999-12-31"]),
    "uuid": ("UUID", "uuid", ["00000000-0000-0000-0000-000000000000", "11111111-2222-3333-4444-555555555555", "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    "bytea": ("BINARY", "bytea", ["\\x", "\\x00", "\\x00ff", "\\x616263"]),
    "_float8": ("DOUBLE[]", "double precision[]", ["{}", "{1.5}", "{1,2,3}", "{NaN,-Infinity}"]),
}
# Tables have no columns of intervals: a sub-query casts texts.
INTERVALS = ["0", "1 day", "-1 month", "1 year 2 mons 3 days 04:05:06.789", "25:00:00", "-00:00:00.000001", "1000 years", "3 hours"]
CONSTANTS = {"interval": INTERVALS}
NAMES = {name: of[1] for name, of in TYPES.items()} | {"interval": "interval"}
PARSE_STATES = ("42", "0A")
"""SQLSTATEs of statements that PostgreSQL rejects before it reads a row."""
ERRORS_PER_EXPRESSION = 3
"""Rows in which Tidalite raises an error and PostgreSQL does not, before the next expression."""
FEW_VALUES = 6
"""Values of each of three arguments."""
CONSTANTS_MAX = 40
"""Values of an expression that are compared as constants, too."""
ERROR_ROWS_MAX = 40
"""Rows in which PostgreSQL raises an error and that Tidalite evaluates one by one."""

MISSING_STATES = ("42883", "0A000", "42601", "42704")
"""SQLSTATEs of Tidalite for functions, operators and forms that do not exist."""

EACH_ROW = """
CREATE OR REPLACE FUNCTION each_row(expression text, source text) RETURNS TABLE(key bigint, value text, state text) LANGUAGE plpgsql AS $$
BEGIN
    FOR key IN EXECUTE 'SELECT k FROM (' || source || ') q ORDER BY k' LOOP
        value := NULL;
        state := NULL;
        BEGIN
            EXECUTE 'SELECT CASE WHEN v IS NULL THEN NULL ELSE format(''%s'', v) END FROM (SELECT (' || expression || ') AS v FROM (' || source || ') q WHERE k = $1 OFFSET 0) w' INTO value USING key;
        EXCEPTION WHEN OTHERS THEN
            state := SQLSTATE;
        END;
        RETURN NEXT;
    END LOOP;
END $$
"""


@dataclass
class Finding:
    outcome: str
    """`value`, `error`, `answer` or `internal`."""
    expression: str
    types: tuple
    values: tuple
    found: str
    expected: str

    def __str__(self):
        return f"{self.outcome}: {self.expression} of {self.types} {self.values}: {self.found} for {self.expected}"


@dataclass
class Counts:
    statements: int = 0
    cells: int = 0
    unknown: int = 0
    """Expressions that PostgreSQL rejects before it reads a row."""
    missing: set = field(default_factory=set)
    """Expressions that Tidalite rejects before it reads a row."""


def values_of(name):
    """The values of a type as texts, the last one NULL."""
    return [*(CONSTANTS[name] if name in CONSTANTS else TYPES[name][2]), None]


def quoted(text):
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"


def literal(text, name):
    return f"CAST({quoted(text)} AS {NAMES[name]})"


def source_of(types):
    """A query of all combinations of values: the key `k` and the columns `a`, `b`, `c`."""
    tables, columns, key = [], [], []
    for place, name in enumerate(types):
        alias = f"t{place}"
        if name in CONSTANTS:
            tables.append(f"(SELECT id, CAST(c AS {NAMES[name]}) AS c FROM edge_{name}) {alias}")
        else:
            tables.append(f"edge_{name} {alias}")
        columns.append(f"{alias}.c AS {'abc'[place]}")
        key.append(f"{alias}.id * {100 ** place}")
    few = " AND ".join(f"(t{place}.id < {FEW_VALUES} OR t{place}.c IS NULL)" for place in range(len(types))) if len(types) > 2 else ""
    return f"SELECT {' + '.join(key)} AS k, {', '.join(columns)} FROM {', '.join(tables)}" + (f" WHERE {few}" if few else "")


GROUPS = {0: "true", 1: "id % 2 = 0", 2: "id < 3", 3: "id > 2", 4: "id IN (1, 4)", 5: "c IS NULL", 6: "id = 0", 7: "id % 3 = 1", 8: "id IN (2, 5)", 9: "false"}
"""Rows of a table of edge values that an aggregate reads."""


def group_source(types, condition):
    """A query of the columns `a` and `b`; `b` is a value of the next row."""
    column = lambda name: "c" if name in TYPES else f"CAST(c AS {NAMES[name]})"
    text = f"SELECT id, {column(types[0])} AS a FROM edge_{types[0]} WHERE {condition}"
    if len(types) == 1:
        return text
    return f"SELECT m.a, n.b FROM ({text}) m JOIN (SELECT id - 1 AS id, {column(types[1])} AS b FROM edge_{types[1]}) n ON m.id = n.id"


def values_at(key, types):
    places = [key // 100 ** place % 100 for place in range(len(types))]
    return tuple(values_of(name)[place] for place, name in zip(places, types))


@dataclass
class Case:
    expression: str
    values: dict
    """By the key of a row."""
    errors: dict
    """SQLSTATEs."""
    oid: int


def outcome_of(answer, due):
    """The outcome of one cell, or an empty text if both answers are the same."""
    if answer.is_internal:
        return "internal"
    if answer.is_error or due.is_error:
        return "" if answer.is_error and due.is_error else "error" if answer.is_error else "answer"
    return "" if same_cells(answer.rows[0][0], due.rows[0][0], answer.types[0], due.types[0]) else "value"


class Edges:
    def __init__(self, ours, postgres):
        self.ours, self.postgres = ours, postgres
        self.counts, self.findings, self.errors_left = Counts(), [], 0
        self.types, self.source, self.is_window = (), "", False
        postgres.must(EACH_ROW)
        for link, place in ((ours, 0), (postgres, 1)):
            for name in [*TYPES, *CONSTANTS]:
                type_name = TYPES[name][place] if name in TYPES else "text" if place else "VARCHAR"
                link.must(f"DROP TABLE IF EXISTS edge_{name}")
                link.must(f"CREATE TABLE edge_{name} (id {'bigint' if place else 'LONG'}, c {type_name})")
                rows = ", ".join(f"({at}, {f'CAST({quoted(v)} AS {NAMES[name]})' if name in TYPES else quoted(v)})" for at, v in enumerate(values_of(name)))
                link.must(f"INSERT INTO edge_{name} VALUES {rows}")

    def expected(self, expressions, source, is_window):
        """What PostgreSQL makes of expressions: a list of `Case`, without those that it rejects before it reads a row, and
        without windows that fail for a row: one row alone has another frame."""
        cases, partly = [], []
        for expression, whole in zip(expressions, self.postgres.ask_all([f"SELECT k, {expression} AS v FROM ({source}) q" for expression in expressions])):
            if not whole.is_error:
                cases.append(Case(expression, {int(k): v for k, v in whole.rows}, {}, whole.types[1]))
            elif whole.state[:2] not in PARSE_STATES and not is_window:
                partly.append(expression)
        asked = [sql for expression in partly for sql in (f"SELECT {expression} AS v FROM ({source}) q WHERE false", f"SELECT * FROM each_row({quoted(expression)}, {quoted(source)})")]
        answers = self.postgres.ask_all(asked)
        for expression, shape, each in zip(partly, answers[::2], answers[1::2]):
            if not shape.is_error and not each.is_error:
                values = {int(k): v for k, v, state in each.rows if state is None}
                cases.append(Case(expression, values, {int(k): state for k, _, state in each.rows if state is not None}, shape.types[0]))
        return cases

    def compare(self, expressions, types, with_constants=False, is_window=False):
        """Adds the differences of expressions of the same types to `findings`; returns how many of them PostgreSQL knows."""
        source = source_of(types)
        cases = self.expected(expressions, source, is_window)
        self.counts.unknown += len(expressions) - len(cases)
        self.counts.cells += sum(len(case.values) for case in cases)
        self.types, self.source, self.is_window = types, source, is_window
        self.compare_whole([case for case in cases if not case.errors])
        for case in cases:
            if case.errors:
                self.compare_partly(case)
            if with_constants:
                self.errors_left = ERRORS_PER_EXPRESSION
                self.compare_constants(case, sorted(case.values)[:CONSTANTS_MAX])
        return len(cases)

    def ask(self, cases, keys=None):
        return self.ours.ask(self.statement(cases, keys))

    def statement(self, cases, keys):
        """All expressions in one statement, over some rows."""
        self.counts.statements += 1
        where = f" WHERE k IN ({', '.join(map(str, keys))})" if keys is not None else ""
        items = ", ".join(f"{case.expression} AS v{at}" for at, case in enumerate(cases))
        return f"SELECT k, {items} FROM ({self.source}) q{where}"

    def compare_whole(self, cases):
        """Expressions without errors in PostgreSQL; halves the list if the statement fails."""
        if not cases:
            return
        answer = self.ask(cases)
        if not answer.is_error:
            for at, case in enumerate(cases):
                self.settle(case, {int(row[0]): row[at + 1] for row in answer.rows}, answer.types[at + 1])
        elif len(cases) > 1:
            middle = len(cases) // 2
            self.compare_whole(cases[:middle])
            self.compare_whole(cases[middle:])
        elif self.is_missing(cases[0], answer):
            return
        elif self.is_window:
            self.tell("internal" if answer.is_internal else "error", cases[0], min(cases[0].values), f"{answer.state} {answer.message.splitlines()[0]}")
        else:
            self.errors_left = ERRORS_PER_EXPRESSION
            self.compare_rows(cases[0], sorted(cases[0].values))

    def is_missing(self, case, answer):
        if answer.state in MISSING_STATES:
            self.counts.missing.add((case.expression, self.types, answer.message.splitlines()[0]))
        return answer.state in MISSING_STATES

    def compare_partly(self, case):
        """An expression that PostgreSQL cannot evaluate for some rows."""
        if case.values:
            self.errors_left = ERRORS_PER_EXPRESSION
            if self.compare_rows(case, sorted(case.values)):
                return
        keys = sorted(case.errors)[:ERROR_ROWS_MAX]
        self.counts.cells += len(keys)
        for key, answer in zip(keys, self.ours.ask_all([self.statement([case], [key]) for key in keys])):
            if answer.is_internal:
                self.tell("internal", case, key, f"{answer.state} {answer.message}")
            elif not answer.is_error and answer.rows:
                self.tell("answer", case, key, answer.rows[0][1])

    def compare_rows(self, case, keys):
        """Halves the rows until each part has an answer or is one row; returns True if Tidalite lacks the expression."""
        if self.errors_left <= 0:
            return False
        answer = self.ask([case], keys)
        if not answer.is_error:
            self.settle(case, {int(k): v for k, v in answer.rows}, answer.types[1])
        elif self.is_missing(case, answer):
            return True
        elif len(keys) == 1:
            self.errors_left -= 1
            self.tell("internal" if answer.is_internal else "error", case, keys[0], f"{answer.state} {answer.message.splitlines()[0]}")
        else:
            middle = len(keys) // 2
            self.compare_rows(case, keys[:middle])
            self.compare_rows(case, keys[middle:])
        return False

    def compare_constants(self, case, keys):
        """The same with constants in the place of columns; halves the rows if the statement fails."""
        if not keys or self.errors_left <= 0:
            return
        put = lambda key: re.sub(r"\b[abc]\b", lambda name: literal(values_at(key, self.types)["abc".index(name[0])], self.types["abc".index(name[0])]), case.expression)
        self.counts.statements += 1
        answer = self.ours.ask(f"SELECT {', '.join(f'{put(key)} AS v{key}' for key in keys)}")
        constant = dataclasses.replace(case, expression=f"{case.expression} of constants")
        if not answer.is_error:
            for at, key in enumerate(keys):
                self.settle(constant, {key: answer.rows[0][at]}, answer.types[at])
        elif len(keys) == 1:
            self.errors_left -= 1
            self.tell("internal" if answer.is_internal else "error", constant, keys[0], f"{answer.state} {answer.message.splitlines()[0]}")
        else:
            middle = len(keys) // 2
            self.compare_constants(case, keys[:middle])
            self.compare_constants(case, keys[middle:])

    def settle(self, case, found, oid):
        for key, value in found.items():
            if not same_cells(value, case.values[key], oid, case.oid):
                self.tell("value", case, key, value)

    def tell(self, outcome, case, key, found):
        due = case.values[key] if key in case.values else case.errors[key]
        self.findings.append(Finding(outcome, case.expression, self.types, values_at(key, self.types), found, due))

    def compare_groups(self, expression, types):
        """An aggregate over several sets of values, the empty one among them."""
        for key, condition in GROUPS.items():
            sql = f"SELECT {expression} AS v FROM ({group_source(types, condition)}) q"
            due = self.postgres.ask(sql)
            if due.state[:2] in PARSE_STATES:
                self.counts.unknown += 1
                return False
            self.counts.cells += 1
            self.counts.statements += 1
            answer = self.ours.ask(sql)
            if answer.state in MISSING_STATES:
                self.counts.missing.add((expression, types, answer.message.splitlines()[0]))
                return True
            if outcome := outcome_of(answer, due):
                found, expected = (answer.state + " " + answer.message.splitlines()[0] if answer.is_error else answer.rows[0][0]), due.state or due.rows[0][0]
                self.findings.append(Finding(outcome, expression, types, (condition,), found, expected))
        return True
