"""Random statements with subqueries; the same text runs on Tidalite and on PostgreSQL.

`Maker(r, tables).statement()` is a `Statement`. Tables have few rows with many NULLs, so that three-valued logic, empty
sub-queries and ties decide the answers. What is made: IN, ANY, ALL, EXISTS and scalar sub-queries under OR, NOT, CASE,
coalesce, IS NULL; in WHERE, HAVING, ON, SELECT lists, ORDER BY, GROUP BY, arguments of aggregates and windows, conditions
of UPDATE and DELETE; sub-queries with joins, DISTINCT, GROUP BY, HAVING, LIMIT, OFFSET, UNION, EXCEPT and aggregates,
correlated at one and two levels. Answers hang on no choice of an engine: LIMIT has an order, and rows are compared as sets
unless `is_ordered`.
"""

import datetime as dt
import math
import re
from dataclasses import dataclass

# Columns with their family, our type and PostgreSQL's.
COLUMNS = {
    "id": ("number", "LONG", "bigint"),
    "a": ("number", "INT", "integer"),
    "b": ("number", "LONG", "bigint"),
    "h": ("number", "SHORT", "smallint"),
    "m": ("number", "DECIMAL(12,3)", "numeric(12,3)"),
    "x": ("number", "DOUBLE", "double precision"),
    "y": ("float", "DOUBLE", "double precision"),
    "v": ("text", "VARCHAR", "text"),
    "s": ("text", "SYMBOL", "text"),
    "f": ("bool", "BOOLEAN", "boolean"),
    "u": ("time", "TIMESTAMP", "timestamp"),
}
FAMILIES = {family: [name for name, of in COLUMNS.items() if of[0] == family and name != "id"] for family in ("number", "float", "text", "bool", "time")}
TEXTS = ["", "a", "b", "B", "it's", "é"]
START = dt.datetime(2024, 1, 1)
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
MARK = re.compile("[\ue000-\uf8ff]")
"""Each constant is represented by a private-use character."""


@dataclass
class Statement:
    shape: str
    text: str
    is_ordered: bool = False
    changes: str = None
    """The table that the statement changes, a copy of `source`."""
    source: str = None
    bound: tuple = None
    """The text with `%s` in the place of each constant, and the values."""


def literal(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, float) and not math.isfinite(value):
        return f"CAST('{value}' AS DOUBLE PRECISION)"
    return str(value)


def cell(value, name):
    """A value in an INSERT."""
    if value is None:
        return "NULL"
    return f"'{value.isoformat(' ')}'" if isinstance(value, dt.datetime) else literal(value)


class Maker:
    def __init__(self, r, tables):
        self.r, self.tables = r, tables
        self.aliases, self.constants = 0, []

    # Rows.

    def rows(self, count):
        for number in range(count):
            yield [number] + [None if self.r.random() < 0.3 else self.stored(name) for name in list(COLUMNS)[1:]]

    def stored(self, name):
        r = self.r
        if name in ("m", "x"):
            return r.choice([0, 1, 2, 1.5, -1.25, 3])
        return self.value(COLUMNS[name][0])

    def value(self, family):
        r = self.r
        return {"number": lambda: r.randrange(-1, 5), "float": lambda: r.choice([0.0, 1.5, -2.0, float("nan"), float("inf")]), "text": lambda: r.choice(TEXTS), "bool": lambda: r.random() < 0.5,
                "time": lambda: START + dt.timedelta(hours=r.randrange(0, 4))}[family]()

    def insert_of(self, table, rows):
        values = ", ".join("(" + ", ".join(cell(v, name) for v, name in zip(row, COLUMNS)) + ")" for row in rows)
        return f"INSERT INTO {table} ({', '.join(COLUMNS)}) VALUES {values}"

    # Values. A scope is a list of aliases, the nearest first, in lists, the innermost query first.

    def alias(self):
        self.aliases += 1
        return f"t{self.aliases}"

    def constant(self, family):
        if self.r.random() < 0.12:
            return f"CAST(NULL AS {COLUMNS[FAMILIES[family][0]][2]})"
        value = self.value(family)
        if family == "number" and self.r.random() < 0.2:
            value += 0.5
        self.constants.append(value)
        return chr(0xE000 + len(self.constants) - 1)

    def column(self, family, scope):
        """Returns a column, in most cases of the innermost query."""
        r = self.r
        level = 0 if len(scope) == 1 or r.random() < 0.6 else r.randrange(0, len(scope))
        aliases = scope[level] or next((s for s in scope if s), [])
        return f"{r.choice(aliases)}.{r.choice(FAMILIES[family])}" if aliases else self.constant(family)

    def term(self, family, scope, depth=1):
        r = self.r
        if r.random() < 0.2:
            return self.constant(family)
        if family == "number" and depth > 0 and r.random() < 0.2:
            return f"({self.column(family, scope)} {r.choice(['+', '-'])} {self.column(family, scope) if r.random() < 0.5 else self.constant(family)})"
        if depth > 0 and r.random() < 0.1:
            return f"{r.choice(['coalesce', 'nullif'])}({self.column(family, scope)}, {self.term(family, scope, 0)})"
        return self.column(family, scope)

    def family(self):
        return self.r.choices(["number", "float", "text", "bool", "time"], [6, 1, 2, 1, 1])[0]

    def aggregate(self, family, alias_scope):
        column = self.column(family, [alias_scope])
        if family == "bool":
            return f"{self.r.choice(['bool_and', 'bool_or'])}({column})"
        return f"{self.r.choice(['min', 'max'] + (['sum', 'count'] if family == 'number' else []))}({column})"

    # Conditions.

    def condition(self, scope, depth):
        r = self.r
        simple = depth <= 0 or r.random() < 0.25
        return self.compared(scope) if simple else r.choices([self.combined, self.queried], [4, 5])[0](scope, depth)

    def compared(self, scope):
        r, family = self.r, self.family()
        kind = r.random()
        if kind < 0.6:
            return f"{self.term(family, scope)} {r.choice(COMPARISONS)} {self.term(family, scope)}"
        if kind < 0.7:
            return f"{self.term(family, scope)} IS {r.choice(['', 'NOT '])}DISTINCT FROM {self.term(family, scope)}"
        if kind < 0.85:
            return f"{self.column(family, scope)} IS {r.choice(['', 'NOT '])}NULL"
        if kind < 0.95:
            return f"{self.term(family, scope)} {r.choice(['', 'NOT '])}IN ({self.term(family, scope)}, {self.constant(family)})"
        return self.column("bool", scope)

    def combined(self, scope, depth):
        r = self.r
        one = lambda: self.condition(scope, depth - 1)
        return r.choices([
            lambda: f"({one()} AND {one()})", lambda: f"({one()} OR {one()})", lambda: f"(NOT ({one()}))",
            lambda: f"(CASE WHEN {one()} THEN {one()} ELSE {one()} END)", lambda: f"(CASE WHEN {one()} THEN {one()} END)",
            lambda: f"coalesce({one()}, {r.choice(['true', 'false'])})", lambda: f"(({one()}) IS {r.choice(['', 'NOT '])}{r.choice(['NULL', 'TRUE', 'FALSE', 'UNKNOWN'])})",
            lambda: f"(({one()}) {r.choice(['=', '<>', 'IS NOT DISTINCT FROM'])} ({one()}))",
        ], [4, 5, 4, 2, 1, 2, 2, 1])[0]()

    def queried(self, scope, depth):
        r, family = self.r, self.family()
        negated = r.choice(["", "NOT "])
        kind = r.choices(["in", "any", "exists", "scalar", "row"], [8, 5, 6, 3, 1])[0]
        if kind == "exists":
            return f"{negated}EXISTS ({self.query(scope, depth - 1, r.choice([[family], ['number', family]]), is_exists=True)})"
        if kind == "row":
            families = [family, self.family()]
            return f"({self.term(families[0], scope)}, {self.term(families[1], scope)}) {negated}IN ({self.query(scope, depth - 1, families)})"
        value = self.term(family, scope)
        if depth > 1 and r.random() < 0.06:
            value = f"({self.one_value(scope, depth - 2, family)})"
        if kind == "in":
            return f"{value} {negated}IN ({self.query(scope, depth - 1, [family])})"
        if kind == "scalar":
            return f"{value} {r.choice(COMPARISONS)} ({self.one_value(scope, depth - 1, family)})"
        return f"{value} {r.choice(COMPARISONS)} {r.choice(['ANY', 'ALL', 'SOME', 'ALL'])} ({self.query(scope, depth - 1, [family])})"

    # Sub-queries.

    def source(self, scope, depth):
        """(text, aliases)"""
        r, alias = self.r, self.alias()
        table = r.choice(self.tables)
        if r.random() < 0.1:
            inner = self.alias()
            return f"(SELECT * FROM {table} {inner} WHERE {self.condition([[inner]], depth - 1)}) {alias}", [alias]
        if r.random() < 0.15:
            other = self.alias()
            on = self.condition([[alias, other]] + (scope if r.random() < 0.3 else []), 0)
            return f"{table} {alias} {r.choice(['JOIN', 'JOIN', 'LEFT JOIN'])} {r.choice(self.tables)} {other} ON {on}", [alias, other]
        return f"{table} {alias}", [alias]

    def where_clause(self, scope, depth):
        r = self.r
        if r.random() < 0.15:
            return ""
        parts = []
        outer = [aliases for aliases in scope[1:] if aliases]
        if outer and r.random() < 0.75:
            family, aliases = self.family(), r.choice(outer[:1] * 3 + outer)
            own, other = f"{r.choice(scope[0])}.{r.choice(FAMILIES[family])}", f"{r.choice(aliases)}.{r.choice(FAMILIES[family])}"
            if family == "number" and r.random() < 0.2:
                other = f"({other} + {self.constant(family)})"
            parts.append(f"{own} {r.choice(['=', '=', '=', *COMPARISONS])} {other}")
        if not parts or r.random() < 0.4:
            parts.append(self.condition(scope, depth))
        return " WHERE " + f" {r.choice(['AND', 'AND', 'OR'])} ".join(parts)

    def query(self, scope, depth, families, is_exists=False):
        """A sub-query with a column of each family."""
        r = self.r
        if len(families) == 1 and r.random() < 0.1:
            word = r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
            return f"{self.plain(scope, depth, families)} {word} {self.plain(scope, depth, families)}"
        kind = r.choices(["plain", "distinct", "group", "limit", "aggregate", "none"], [10, 2, 4, 4, 2, 1])[0]
        if kind == "plain":
            return self.plain(scope, depth, families, is_exists)
        if kind == "none":
            values = ", ".join(self.term(family, [[]] + scope) for family in families)
            return f"SELECT {values}" + (f" WHERE {self.condition([[]] + scope, depth)}" if r.random() < 0.5 else "")
        text, aliases = self.source(scope, depth)
        inner = [aliases] + scope
        items = [self.term(family, inner) for family in families]
        if kind == "distinct":
            return f"SELECT DISTINCT {', '.join(items)} FROM {text}{self.where_clause(inner, depth)}"
        if kind == "limit":
            items = [f"{item} AS c{n}" for n, item in enumerate(items)]
            keys = [f"c{n} {r.choice(['ASC', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])}" for n in range(len(items))]
            many = r.choice([0, 1, 1, 2, 3]) if r.random() < 0.9 else 1
            skip = f" OFFSET {r.choice([0, 1, 2])}" if r.random() < 0.3 else ""
            order = "" if is_exists and r.random() < 0.3 else f" ORDER BY {', '.join(keys)}"
            return f"SELECT {', '.join(items)} FROM {text}{self.where_clause(inner, depth)}{order} LIMIT {many}{skip}"
        if kind == "aggregate":
            items = [self.aggregate(family, aliases) for family in families]
            having = f" HAVING count(*) {r.choice(COMPARISONS)} {self.constant('number')}" if r.random() < 0.3 else ""
            return f"SELECT {', '.join(items)} FROM {text}{self.where_clause(inner, depth)}{having}"
        keys = [f"{r.choice(aliases)}.{r.choice(FAMILIES[family])}" for family in families]
        items = [key if r.random() < 0.7 else self.aggregate(family, aliases) for key, family in zip(keys, families)]
        having = ""
        if r.random() < 0.4:
            outer = [s for s in scope if s]
            other = self.column("number", outer) if outer and r.random() < 0.4 else self.constant("number")
            having = f" HAVING {r.choice(['count(*)', self.aggregate('number', aliases)])} {r.choice(COMPARISONS)} {other}"
        return f"SELECT {', '.join(items)} FROM {text}{self.where_clause(inner, depth)} GROUP BY {', '.join(keys)}{having}"

    def plain(self, scope, depth, families, is_exists=False):
        r = self.r
        text, aliases = self.source(scope, depth)
        inner = [aliases] + scope
        items = r.choice(["1", "*", f"{aliases[0]}.*"]) if is_exists and r.random() < 0.5 else ", ".join(f"{self.term(family, inner)} AS c{n}" for n, family in enumerate(families))
        return f"SELECT {items} FROM {text}{self.where_clause(inner, depth)}"

    def one_value(self, scope, depth, family):
        """A sub-query of one row at most."""
        r = self.r
        text, aliases = self.source(scope, depth)
        inner = [aliases] + scope
        if r.random() < 0.6:
            return f"SELECT {self.aggregate(family, aliases)} FROM {text}{self.where_clause(inner, depth)}"
        return f"SELECT {self.term(family, inner)} AS c0 FROM {text}{self.where_clause(inner, depth)} ORDER BY c0 {r.choice(['ASC', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])} LIMIT 1"

    # Statements.

    SHAPES = dict(where=10, selected=6, both=3, group=4, join=4, outer_join=3, aggregates=3, update=2, delete=3, insert=1, ordered=2, derived=3, cte=2, window=1, by=1, scalar=2, union=1)

    def statement(self):
        self.aliases, self.constants = 0, []
        shape = self.r.choices(list(self.SHAPES), list(self.SHAPES.values()))[0]
        made = getattr(self, shape)()
        made.shape = shape
        place = lambda mark: ord(mark) - 0xE000
        text = made.text
        made.text = MARK.sub(lambda m: literal(self.constants[place(m[0])]), text)
        made.bound = MARK.sub("%s", text), [self.constants[place(mark)] for mark in MARK.findall(text)]
        return made

    def outer(self):
        alias = self.alias()
        return f"{self.r.choice(self.tables)} {alias}", [[alias]]

    def predicate(self, scope):
        return self.queried(scope, 2) if self.r.random() < 0.5 else self.combined(scope, 3)

    def filtered(self):
        text, scope = self.outer()
        return f"SELECT {scope[0][0]}.id FROM {text} WHERE {self.predicate(scope)}"

    def truth(self, scope):
        return self.queried(scope, 2) if self.r.random() < 0.6 else self.combined(scope, 2)

    def where(self):
        return Statement("", self.filtered())

    def selected(self):
        text, scope = self.outer()
        items = ", ".join(f"{self.truth(scope)} AS p{n}" for n in range(self.r.choice([1, 1, 2])))
        return Statement("", f"SELECT {scope[0][0]}.id, {items} FROM {text}")

    def both(self):
        text, scope = self.outer()
        return Statement("", f"SELECT {scope[0][0]}.id, {self.truth(scope)} AS p FROM {text} WHERE {self.predicate(scope)}")

    def group(self):
        r, (text, scope) = self.r, self.outer()
        key = f"{scope[0][0]}.{r.choice(FAMILIES[r.choice(['number', 'text'])])}"
        of_key = [key]
        value = r.choice([self.aggregate("number", scope[0]), "count(*)", *of_key])
        family = "text" if value == key and key[-1] in "vs" else "number"
        negated = r.choice(["", "NOT "])
        depth = r.choice([0, 1])
        alias = self.alias()
        correlated = f" WHERE {alias}.{key.split('.')[1]} {r.choice(['=', '<>', '<'])} {key}" if r.random() < 0.5 else ""
        inner = f"SELECT {alias}.{r.choice(FAMILIES[family])} FROM {r.choice(self.tables)} {alias}{correlated}"
        asked = r.choice([f"{value} {negated}IN ({inner})", f"{value} {r.choice(COMPARISONS)} {r.choice(['ANY', 'ALL'])} ({inner})", f"{negated}EXISTS ({inner})",
                          f"coalesce({value} {negated}IN ({inner}), true)", f"({value} {negated}IN ({inner})) IS NULL"])
        if depth:
            asked = f"count(*) {r.choice(COMPARISONS)} {self.constant('number')} {r.choice(['OR', 'AND'])} {asked}"
        return Statement("", f"SELECT {key}, count(*) FROM {text}{self.where_clause([scope[0]], 0) if r.random() < 0.3 else ''} GROUP BY {key} HAVING {asked}")

    def join(self):
        r, one, other = self.r, self.alias(), self.alias()
        scope = [[one, other]]
        where = f" WHERE {self.predicate(scope)}" if r.random() < 0.3 else ""
        return Statement("", f"SELECT {one}.id, {other}.id FROM {r.choice(self.tables)} {one} JOIN {r.choice(self.tables)} {other} ON {self.predicate(scope)}{where}")

    def outer_join(self):
        r, one, other = self.r, self.alias(), self.alias()
        scope = [[one, other]] if r.random() < 0.5 else [[r.choice([one, other])]]
        equal = f"{one}.{r.choice(FAMILIES['number'])} = {other}.{r.choice(FAMILIES['number'])} AND " if r.random() < 0.5 else ""
        word = r.choice(["LEFT JOIN", "LEFT JOIN", "RIGHT JOIN"])
        return Statement("", f"SELECT {one}.id, {other}.id FROM {r.choice(self.tables)} {one} {word} {r.choice(self.tables)} {other} ON {equal}{self.queried(scope, 1)}")

    def aggregates(self):
        r, (text, scope) = self.r, self.outer()
        p = lambda: self.truth(scope)
        asked = r.choice([lambda: f"sum(CASE WHEN {p()} THEN 1 ELSE 0 END)", lambda: f"count(*) FILTER (WHERE {p()})", lambda: f"bool_or({p()})", lambda: f"count(CASE WHEN {p()} THEN {scope[0][0]}.id END)"])()
        if r.random() < 0.4:
            key = f"{scope[0][0]}.{r.choice(['a', 'f', 's'])}"
            return Statement("", f"SELECT {key}, {asked} FROM {text} GROUP BY {key}")
        return Statement("", f"SELECT {asked} FROM {text}{self.where_clause([scope[0]], 1) if r.random() < 0.3 else ''}")

    def update(self):
        r, source = self.r, self.r.choice(self.tables)
        scope = [["changed"]]
        name = r.choice([c for c in COLUMNS if c != "id"])
        value = r.choice(["NULL", literal(self.value(COLUMNS[name][0]))])
        return Statement("", f"UPDATE changed SET {name} = {value} WHERE {self.predicate(scope)}", changes="changed", source=source)

    def delete(self):
        return Statement("", f"DELETE FROM changed WHERE {self.predicate([['changed']])}", changes="changed", source=self.r.choice(self.tables))

    def insert(self):
        text, scope = self.outer()
        names = ", ".join(f"{scope[0][0]}.{name}" for name in COLUMNS)
        return Statement("", f"INSERT INTO changed ({', '.join(COLUMNS)}) SELECT {names} FROM {text} WHERE {self.predicate(scope)}", changes="changed", source=self.tables[0])

    def ordered(self):
        text, scope = self.outer()
        return Statement("", f"SELECT {scope[0][0]}.id FROM {text} ORDER BY {self.truth(scope)} {self.r.choice(['ASC', 'DESC'])} NULLS {self.r.choice(['FIRST', 'LAST'])}, {scope[0][0]}.id", is_ordered=True)

    def derived(self):
        r, (text, scope) = self.r, self.outer()
        inner = f"SELECT {scope[0][0]}.*, {self.truth(scope)} AS p FROM {text}"
        if r.random() < 0.3:
            inner += f" ORDER BY {scope[0][0]}.id LIMIT {r.choice([1, 2, 5])}"
        alias = self.alias()
        return Statement("", f"SELECT {alias}.id, {alias}.p FROM ({inner}) {alias} WHERE {r.choice([f'{alias}.p', f'NOT {alias}.p', f'{alias}.p IS NULL', self.predicate([[alias]])])}")

    def cte(self):
        r, name = self.r, self.alias()
        text, scope = self.outer()
        inner = f"SELECT {scope[0][0]}.* FROM {text} WHERE {self.predicate(scope)}"
        tables, self.tables = self.tables, [name] * 2 + self.tables
        made = self.filtered()
        self.tables = tables
        return Statement("", f"WITH {name} AS ({inner}) {made}")

    def window(self):
        r, (text, scope) = self.r, self.outer()
        key = r.choice([f"{scope[0][0]}.a", self.truth(scope)])
        return Statement("", f"SELECT {scope[0][0]}.id, sum(CASE WHEN {self.truth(scope)} THEN 1 ELSE 0 END) OVER (PARTITION BY {key}) FROM {text}")

    def by(self):
        text, scope = self.outer()
        inner = f"SELECT {self.truth(scope)} AS p, {scope[0][0]}.id FROM {text}"
        if self.r.random() < 0.5:
            return Statement("", f"SELECT p, count(*) FROM ({inner}) q GROUP BY p")
        return Statement("", f"SELECT DISTINCT {self.truth(scope)} AS p FROM {text}")

    def scalar(self):
        text, scope = self.outer()
        family = self.family()
        return Statement("", f"SELECT {scope[0][0]}.id, ({self.one_value(scope, 2, family)}) AS q, {self.truth([[]])} AS p FROM {text}")

    def union(self):
        one, other = self.filtered(), self.filtered()
        return Statement("", f"{one} {self.r.choice(['UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'])} {other}")
