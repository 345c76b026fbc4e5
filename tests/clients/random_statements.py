"""Random statements of all clauses; the same text runs on Tidalite and on PostgreSQL.

`Maker(r, tables).statement()` is a `Statement`. Rounds have small numbers, so that no arithmetic overflows, or extreme
values: NaN, infinities, outliers, the years 1 to 9999. Generated besides the expressions of `random_forms.py`: NULL inside IN
and ANY, GROUP BY with HAVING, FILTER, DISTINCT, WITHIN GROUP and GROUPING SETS, windows with frames that outliers leave,
set operations, VALUES, DISTINCT ON, LATERAL, recursive queries, comparisons of rows, EXISTS and IN over grouped, distinct
and limited sub-queries, joins of all kinds, INSERT, UPDATE, DELETE and MERGE with RETURNING. Answers do not depend on a choice of the
engine: a LIMIT has a total order, and rows are compared as sets unless `is_ordered`.
"""

import datetime as dt
import re
from dataclasses import dataclass

from random_forms import AGGREGATES, COMPARED, COMPARISONS, DISTINCT_OR_ORDERED, FIELDS, FORMATS, FORMS, FRAMES, NAMES, NUMBER_FORMATS, PATTERNS, REGEXES, UNITS, WINDOW_FUNCTIONS, ZONES

# Columns with their kind, our type and PostgreSQL's.
COLUMNS = {
    "id": ("int8", "LONG", "bigint"), "ts": ("timestamp", "TIMESTAMP", "timestamp"), "h": ("int2", "SHORT", "smallint"), "i": ("int4", "INT", "integer"), "j": ("int4", "INT", "integer"), "b": ("int8", "LONG", "bigint"),
    "e": ("float4", "REAL", "real"), "x": ("float8", "DOUBLE", "double precision"), "y": ("float8", "DOUBLE", "double precision"), "m": ("numeric", "DECIMAL(12,3)", "numeric(12,3)"), "n": ("numeric", "DECIMAL(12,3)", "numeric(12,3)"),
    "v": ("text", "VARCHAR", "text"), "s": ("text", "SYMBOL", "text"), "f": ("bool", "BOOLEAN", "boolean"), "u": ("timestamp", "TIMESTAMP", "timestamp"), "d": ("date", "DATE", "date"), "g": ("uuid", "UUID", "uuid"), "l": ("floats", "DOUBLE[]", "double precision[]"),
}
KINDS = {name: of[0] for name, of in COLUMNS.items()}
UNIQUE = "id"
TEXTS = ["", "a", "b", "ab", "B", "it's", "é", " a ", "10", "aXb", "a%b", "日本😀"]
UUIDS = ["00000000-0000-0000-0000-000000000000", "11111111-2222-3333-4444-555555555555", "ffffffff-ffff-ffff-ffff-ffffffffffff"]
INTERVALS = ["1 hour", "-1 day", "1 month", "00:00:00.000001", "1 year 2 days", "90 minutes", "0"]
WILD_TIMES = ["0001-01-01 00:00:00", "1677-09-21 00:12:43.145224", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2262-04-11 23:47:16.854776", "9999-12-31 23:59:59.999999", "2024-03-31 01:30:00", "2024-10-27 01:30:00"]
WILD_FLOATS = ["NaN", "Infinity", "-Infinity", "-0", "1e60"]
SELECTED = ["int4", "int4", "int8", "int8", "int2", "float8", "float8", "float4", "numeric", "numeric", "text", "text", "bool", "bool", "bool", "timestamp", "date", "interval", "uuid", "floats"]
MARK = re.compile("[\ue000-\uf8ff]")
"""Each constant is represented by a private-use character."""


@dataclass
class Statement:
    shape: str
    text: str
    is_ordered: bool = False
    changes: str = ""
    """The table that the statement changes, a copy of `source`."""
    source: str = ""
    bound: tuple = ()
    """The text with `$1`, `$2`, … in the place of each constant, and their texts."""


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Maker:
    def __init__(self, r, tables, is_wild=False):
        self.r, self.tables, self.is_wild = r, tables, is_wild
        self.aliases, self.constants, self.depth = 0, [], 0

    # Rows and constants, as texts.

    def value(self, kind):
        r = self.r
        start = dt.datetime(2024, 3, 31)
        wild = self.is_wild and r.random() < 0.3
        if kind == "timestamp":
            return r.choice(WILD_TIMES) if wild else str(start + dt.timedelta(minutes=30 * r.randrange(0, 12)))
        if kind == "date":
            return r.choice(WILD_TIMES)[:10] if wild else str((start + dt.timedelta(days=r.randrange(-3, 3))).date())
        if kind in ("float8", "float4"):
            return r.choice(WILD_FLOATS if kind == "float8" else WILD_FLOATS[:4]) if wild else str(r.choice([0, 1, 2, -1, 1.5, -2.25, 3.5]))
        if kind == "numeric":
            return r.choice(["0", "1", "1.5", "-2.25", "0.001", "3", "2.500", "-0.5"] + (["999999.999", "-999999.999"] if wild else []))
        if kind == "floats":
            return "{" + ",".join(str(r.choice([0, 1, 1.5, 2, -1])) for _ in range(r.randrange(0, 4))) + "}"
        return {"text": lambda: r.choice(TEXTS), "bool": lambda: r.choice(["true", "false"]), "uuid": lambda: r.choice(UUIDS), "interval": lambda: r.choice(INTERVALS)}.get(kind, lambda: str(r.randrange(-2, 6)))()

    def insert_of(self, table, first, count):
        rows = []
        for number in range(first, first + count):
            cells = [f"CAST({quoted(self.value(kind))} AS {NAMES[kind]})" if name == "ts" or self.r.random() > 0.22 else "NULL" for name, kind in list(KINDS.items())[1:]]
            rows.append(f"({number}, {', '.join(cells)})")
        return f"INSERT INTO {table} ({', '.join(COLUMNS)}) VALUES {', '.join(rows)}"

    def constant(self, kind):
        """A mark; `finished` puts a literal or a parameter in its place."""
        if self.r.random() < 0.06:
            return f"CAST(NULL AS {NAMES[kind]})"
        self.constants.append((kind, self.value(kind)))
        return chr(0xE000 + len(self.constants) - 1)

    def literal(self, kind, text):
        """A constant in one of its spellings: `1.5` and `'abc'` without a type, too."""
        if kind == "text":
            return quoted(text)
        if kind == "bool":
            return text
        if kind == "numeric" and self.r.random() < 0.4:
            return text if text[0] != "-" else f"({text})"
        return f"CAST({quoted(text)} AS {NAMES[kind]})"

    def finished(self, statement, shape):
        texts, values = [], [text for _, text in self.constants]
        literals = [self.literal(kind, text) for kind, text in self.constants]
        texts = [f"CAST(${{}} AS {NAMES[kind]})" for kind, _ in self.constants]
        used = []

        def bound(mark):
            place = ord(mark[0]) - 0xE000
            used.append(values[place])
            return texts[place].format(len(used))
        text = statement.text
        statement.bound = MARK.sub(bound, text), used
        statement.text = MARK.sub(lambda mark: literals[ord(mark[0]) - 0xE000], text)
        statement.shape = shape
        return statement

    # Expressions. A scope is a list of (column, kind).

    def alias(self):
        self.aliases += 1
        return f"t{self.aliases}"

    @staticmethod
    def names(alias):
        return [(f"{alias}.{name}", kind) for name, kind in KINDS.items()]

    def column(self, kind, scope):
        columns = [name for name, of in scope if of == kind]
        return self.r.choice(columns) if columns else self.constant(kind)

    def expr(self, kind, scope, depth=2):
        r = self.r
        if kind == "any":
            kind = r.choice(["int4", "text", "float8", "numeric", "timestamp", "bool", "date", "int8"])
        if depth <= 0 or r.random() < 0.3:
            if kind == "bool":
                return self.compared(scope, 0)
            return self.column(kind, scope) if r.random() < 0.8 else self.constant(kind)
        if kind == "bool" and r.random() < 0.55:
            return self.condition(scope, depth)
        if self.is_wild and kind in ("timestamp", "date", "interval", "numeric"):
            forms = [form for form in FORMS[kind] if "{unit}" not in form[1] and "interval" not in form[0] and "+" not in form[1] and "-" not in form[1] and "age" not in form[1] and "*" not in form[1] and "zone" not in form[1]]
        else:
            forms = FORMS[kind]
        kinds, text = r.choice(forms or FORMS[kind])
        return self.filled(text).format(*[self.expr(of, scope, depth - 1) for of in kinds])

    def filled(self, text):
        r = self.r
        for mark, words in (("{unit}", UNITS), ("{field}", FIELDS), ("{zone}", ZONES), ("{pattern}", PATTERNS), ("{regex}", REGEXES), ("{format}", FORMATS), ("{number_format}", NUMBER_FORMATS)):
            if mark in text:
                text = text.replace(mark, r.choice(words).replace("{", "{{").replace("}", "}}"))
        return text

    # Conditions.

    def compared(self, scope, depth):
        r = self.r
        kind = r.choice(COMPARED)
        one = lambda: self.expr(kind, scope, depth - 1)
        if r.random() < 0.2:
            # Numbers of two types.
            return f"({self.expr(r.choice(['int4', 'int8', 'numeric', 'float8', 'int2']), scope, depth - 1)} {r.choice(COMPARISONS)} {self.expr(r.choice(['int4', 'numeric', 'float8', 'int8']), scope, depth - 1)})"
        return r.choices([
            lambda: f"({one()} {r.choice(COMPARISONS)} {one()})", lambda: f"({one()} {r.choice(['', 'NOT '])}BETWEEN {one()} AND {one()})", lambda: f"({one()} IS {r.choice(['', 'NOT '])}NULL)", lambda: self.listed(kind, scope, depth),
        ], [6, 1 if kind not in ("timestamp", "date") else 0, 1, 4])[0]()

    def listed(self, kind, scope, depth):
        """IN, ANY and ALL with lists, with NULL among their members."""
        r = self.r
        value = self.expr(kind, scope, depth - 1)
        members = [r.choice([self.constant(kind), self.column(kind, scope)]) for _ in range(r.choice([1, 2, 3, 5]))]
        if r.random() < 0.45:
            members.insert(r.randrange(0, len(members) + 1), "NULL")
        return f"({value} {r.choice(['', 'NOT '])}IN ({', '.join(members)}))"

    def rows_compared(self, scope):
        """A comparison of row constructors of ids and integers."""
        r = self.r
        ids = [name for name, _ in scope if name.endswith(".id")]
        if not ids:
            return self.compared(scope, 0)
        row = lambda: f"({r.choice(ids)}, {r.choice([*ids, *'0123'])})"
        if r.random() < 0.4:
            return f"({row()} {r.choice(['', 'NOT '])}IN ({row()}, ({r.choice('0123')}, {r.choice('0123')})))"
        return f"({row()} {r.choice(COMPARISONS[:6])} {row()})"

    def condition(self, scope, depth=2):
        r = self.r
        if depth <= 0:
            return self.compared(scope, 0)
        one = lambda: self.condition(scope, depth - 1)
        return r.choices([
            lambda: f"({one()} AND {one()})", lambda: f"({one()} OR {one()})", lambda: f"(NOT {one()})", lambda: f"(CASE WHEN {one()} THEN {one()} ELSE {one()} END)", lambda: f"(CASE WHEN {one()} THEN {one()} END)",
            lambda: f"coalesce({one()}, {r.choice(['true', 'false'])})", lambda: f"({one()} IS {r.choice(['', 'NOT '])}{r.choice(['NULL', 'TRUE', 'FALSE', 'UNKNOWN'])})", lambda: f"({one()} {r.choice(['=', '<>', 'IS DISTINCT FROM'])} {one()})",
            lambda: self.compared(scope, depth), lambda: self.expr("bool", scope, 1) if depth > 1 else self.compared(scope, 1), lambda: self.asked(scope, depth),
        ], [3, 4, 3, 2, 1, 2, 2, 1, 6, 3, 2])[0]()

    # Sub-queries.

    def asked(self, scope, depth):
        if self.depth > 1:
            return self.compared(scope, 0)
        self.depth += 1
        try:
            return self.asked_inside(scope)
        finally:
            self.depth -= 1

    def asked_inside(self, scope):
        r, kind = self.r, self.r.choice(["int4", "text", "int8", "numeric", "float8", "timestamp"])
        negated = r.choice(["", "NOT "])
        value = self.expr(kind, scope, 1)
        return r.choices([
            lambda: f"({negated}EXISTS ({self.sub_query(scope, [kind])}))", lambda: f"({value} {negated}IN ({self.sub_query(scope, [kind])}))", lambda: f"({value} {r.choice(COMPARISONS[:6])} {r.choice(['ANY', 'ALL'])} ({self.sub_query(scope, [kind])}))",
            lambda: f"({value} {r.choice(COMPARISONS)} ({self.one_value(scope, kind)}))",
        ], [3, 3, 2, 3])[0]()

    def sub_query(self, scope, kinds):
        r = self.r
        if r.random() < 0.12:
            return f"{self.simple_query(scope, kinds)} {r.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} {self.simple_query(scope, kinds)}"
        if r.random() < 0.1:
            rows = ", ".join("(" + ", ".join(self.constant(kind) for kind in kinds) + ")" for _ in range(r.randrange(1, 4)))
            return f"SELECT c0 FROM (VALUES {rows}) w({', '.join(f'c{n}' for n in range(len(kinds)))})"
        return self.simple_query(scope, kinds)

    def correlated(self, inner, scope):
        """A WHERE clause that may refer to the outer query."""
        r = self.r
        parts = []
        if scope and r.random() < 0.6:
            kind = r.choice(["int4", "text", "int8", "numeric", "timestamp"])
            parts.append(f"{self.column(kind, inner)} {r.choice(['=', '=', '=', '<', '>=', '<>'])} {self.column(kind, scope)}")
        if not parts or r.random() < 0.5:
            parts.append(self.condition(inner, 1))
        return " WHERE " + " AND ".join(parts)

    def simple_query(self, scope, kinds):
        r, alias = self.r, self.alias()
        inner = self.names(alias)
        where = self.correlated(inner, scope)
        table = r.choice(self.tables)
        items = [self.expr(kind, inner, 1) for kind in kinds]
        shape = r.choice(["plain", "plain", "distinct", "group", "limit", "having"])
        if shape == "distinct":
            return f"SELECT DISTINCT {', '.join(items)} FROM {table} {alias}{where}"
        if shape == "limit":
            named = [f"{item} AS c{n}" for n, item in enumerate(items)]
            keys = ", ".join(f"c{n} {r.choice(['ASC', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])}" for n in range(len(items)))
            return f"SELECT {', '.join(named)} FROM {table} {alias}{where} ORDER BY {keys} LIMIT {r.choice([0, 1, 2])}" + (f" OFFSET {r.choice([0, 1])}" if r.random() < 0.3 else "")
        if shape in ("group", "having"):
            keys = [self.column(kind, inner) for kind in kinds]
            having = f" HAVING {self.having(inner)}" if shape == "having" else ""
            return f"SELECT {', '.join(keys)} FROM {table} {alias}{where} GROUP BY {', '.join(keys)}{having}"
        return f"SELECT {', '.join(items)} FROM {table} {alias}{where}"

    def one_value(self, scope, kind):
        """A sub-query of one row at most."""
        r, alias = self.r, self.alias()
        inner = self.names(alias)
        where, table = self.correlated(inner, scope), r.choice(self.tables)
        if r.random() < 0.6:
            return f"SELECT {r.choice(['min', 'max'])}({self.expr(kind, inner, 1)}) FROM {table} {alias}{where}"
        return f"SELECT {self.expr(kind, inner, 1)} AS c0 FROM {table} {alias}{where} ORDER BY c0 {r.choice(['ASC', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])} LIMIT 1"

    def having(self, scope):
        """A condition on aggregates, NULL in lists among them."""
        r = self.r
        one = lambda: self.having_part(scope)
        return r.choice([one, one, lambda: f"({one()} OR {one()})", lambda: f"(NOT {one()})", lambda: f"coalesce({one()}, true)", lambda: f"(CASE WHEN {one()} THEN {one()} ELSE false END)", lambda: f"({one()} IS UNKNOWN)"])()

    def having_part(self, scope):
        r = self.r
        value = r.choice(["count(*)", f"sum({self.column('int4', scope)})", f"max({self.column('int4', scope)})", f"min({self.column('numeric', scope)})", f"count(DISTINCT {self.column('text', scope)})", f"avg({self.column('numeric', scope)})"])
        members = [self.constant("int4") for _ in range(r.randrange(1, 3))] + (["NULL"] if r.random() < 0.5 else [])
        return r.choice([f"{value} {r.choice(COMPARISONS[:6])} {self.constant('int4')}", f"{value} {r.choice(['', 'NOT '])}IN ({', '.join(members)})", f"{value} IS NOT NULL", f"{value} BETWEEN {self.constant('int4')} AND {self.constant('numeric')}"])

    # Aggregates and windows.

    def aggregate(self, scope, is_window=False):
        """An aggregate and its kind."""
        r = self.r
        # The greatest INTERVAL of a moving frame is an open kind.
        pool = [form for form in AGGREGATES if not (is_window and (form[2] == "max({})" and form[0] == "interval" or any(word in form[2] for word in DISTINCT_OR_ORDERED)))]
        if self.is_wild:
            # Large and small numbers: sums depend on the order of the rows.
            pool = [form for form in pool if is_window or "float8" not in form[1] or form[2].startswith(("min", "max", "count", "percentile_cont", "(array"))]
        kind, kinds, text = r.choice(pool)
        made = text.format(*[self.expr(of, scope, 1) for of in kinds])
        if "WITHIN" not in text and "array_" not in text and r.random() < 0.2:
            made += f" FILTER (WHERE {self.condition(scope, 1)})"
        return made, kind

    def windowed(self, scope, id_column):
        r = self.r
        part = f"PARTITION BY {self.expr(r.choice(['int4', 'text', 'bool', 'date']), scope, 1)} " if r.random() < 0.6 else ""
        keys = ", ".join(f"{self.column(r.choice(['int4', 'text', 'numeric', 'timestamp', 'float8']), scope)} {r.choice(['ASC', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])}" for _ in range(r.choice([1, 1, 2])))
        is_ranked = r.random() < 0.35
        order = f"ORDER BY {keys}" + ("" if is_ranked and r.random() < 0.3 else f", {id_column}")
        if is_ranked:
            kinds, text = r.choice(WINDOW_FUNCTIONS)
            if id_column not in order:
                kinds, text = [], r.choice(["rank()", "dense_rank()", "cume_dist()", "percent_rank()", "count(*)"])
            return f"{text.format(*[self.expr(kind, scope, 1) for kind in kinds])} OVER ({part}{order})"
        return f"{self.aggregate(scope, is_window=True)[0]} OVER ({part}{order} {r.choice(FRAMES)})"

    # FROM clauses.

    def source(self, depth=1):
        """(text, scope)"""
        r, alias = self.r, self.alias()
        table = r.choice(self.tables)
        pick = r.random()
        if depth <= 0 or pick < 0.5:
            return f"{table} {alias}", self.names(alias)
        if pick < 0.62:
            return self.derived(alias)
        if pick < 0.67:
            return self.values_list(alias)
        return self.joined(table, alias)

    def derived(self, alias):
        r, inner = self.r, self.alias()
        kinds = [r.choice(SELECTED) for _ in range(r.randrange(1, 4))]
        items = [self.expr(kind, self.names(inner), 1) for kind in kinds]
        listed = ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))
        where = f" WHERE {self.condition(self.names(inner), 1)}" if r.random() < 0.4 else ""
        tail = f" ORDER BY {inner}.id DESC LIMIT {r.choice([1, 3, 6])}" if r.random() < 0.3 else ""
        text = f"(SELECT {inner}.id, {listed} FROM {r.choice(self.tables)} {inner}{where}{tail}) {alias}"
        return text, [(f"{alias}.id", "int8")] + [(f"{alias}.c{n}", kind) for n, kind in enumerate(kinds)]

    def values_list(self, alias):
        r = self.r
        kinds = ["int8"] + [r.choice(["int4", "text", "numeric", "timestamp", "bool"]) for _ in range(2)]
        rows = [[f"{number}::bigint", *[f"CAST({self.constant(kind)} AS {NAMES[kind]})" for kind in kinds[1:]]] for number in range(r.randrange(1, 5))]
        text = ", ".join("(" + ", ".join(row) + ")" for row in rows)
        return f"(VALUES {text}) {alias}(id, c1, c2)", [(f"{alias}.id", "int8"), (f"{alias}.c1", kinds[1]), (f"{alias}.c2", kinds[2])]

    def joined(self, table, alias):
        r, other = self.r, self.alias()
        second = r.choice(self.tables)
        scope = self.names(alias) + self.names(other)
        word = r.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LATERAL"])
        if word == "CROSS JOIN":
            return f"{self.tables[1]} {alias} CROSS JOIN {second} {other}", scope
        if word == "LATERAL":
            inner = self.alias()
            kind = r.choice(["int4", "text", "numeric"])
            query = f"SELECT {inner}.* FROM {second} {inner} WHERE {self.column(kind, self.names(inner))} {r.choice(['=', '<', '>='])} {self.column(kind, self.names(alias))} ORDER BY {inner}.{r.choice(['i', 's', 'm'])} NULLS FIRST, {inner}.id LIMIT {r.choice([1, 2])}"
            kind_of_join, condition = r.choice([("CROSS JOIN", ""), ("LEFT JOIN", " ON true")])
            return f"{table} {alias} {kind_of_join} LATERAL ({query}) {other}{condition}", scope
        kind = r.choice(["int4", "int8", "text", "numeric", "timestamp", "date", "float8", "uuid", "int2"])
        on = f"{self.column(kind, self.names(alias))} = {self.column(kind, self.names(other))}"
        if r.random() < 0.4:
            more = self.compared(scope, 0) if word == "FULL JOIN" else self.condition(scope, 1)
            on += f" AND {more}" if word == "FULL JOIN" or r.random() < 0.8 else f" OR {more}"
        return f"{table} {alias} {word} {second} {other} ON {on}", scope

    def from_where(self, depth=1):
        """(text, scope, the columns that identify a row)"""
        text, scope = self.source(depth)
        where = f" WHERE {self.condition(scope, 2)}" if self.r.random() < 0.75 else ""
        return f" FROM {text}{where}", scope, [name for name, _ in scope if name.endswith(".id")]
