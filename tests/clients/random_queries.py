"""Queries by chance, each in two spellings: ours and DuckDB's.

`Maker(r, tables).query()` is a `Query`, and `maker.varied(query)` the same with other constants. What docs/semantics.md lists as different is not made, or is written for each
engine: integer division, for one. Of rows that an engine may choose among, only what does not hang on the choice is
asked: the column `id` counts the rows in order of arrival and breaks every tie.
"""

import datetime as dt
import decimal
import re
import uuid
from dataclasses import dataclass, replace

COLUMNS = {"id": "long", "ts": "time", "a": "long", "b": "long", "i": "long", "x": "double", "s": "text", "v": "text", "f": "bool", "u": "time", "d": "date",
           "h": "long", "y": "long", "e": "float", "m": "decimal", "g": "uuid", "w": "nanos"}
TYPES = {"id": "LONG", "ts": "TIMESTAMP", "a": "LONG", "b": "LONG", "i": "INT", "x": "DOUBLE", "s": "SYMBOL", "v": "VARCHAR", "f": "BOOLEAN", "u": "TIMESTAMP", "d": "DATE",
         "h": "SHORT", "y": "BYTE", "e": "REAL", "m": "DECIMAL(12,3)", "g": "UUID", "w": "TIMESTAMP_NS"}
DUCKDB = {"LONG": "BIGINT", "SYMBOL": "VARCHAR", "SHORT": "SMALLINT", "BYTE": "TINYINT"}
KINDS = ["long", "long", "double", "double", "text", "text", "bool", "bool", "time", "time", "date", "date", "decimal", "uuid", "nanos", "float"]
NAMES = dict(long="BIGINT", double="DOUBLE", text="VARCHAR", bool="BOOLEAN", time="TIMESTAMP", date="DATE", decimal="DECIMAL(12,3)", uuid="UUID", nanos="TIMESTAMP_NS", float="REAL")
UUIDS = ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001", "11111111-2222-3333-4444-555555555555", "7fffffff-ffff-ffff-ffff-ffffffffffff", "80000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]
TEXTS = ["", "a", "b", "ab", "B", "zz", "aXb", "a%b", "a_b", "é", "日本", " a ", "10", "it's", "abcdefghijklmnop", "abcdefghijklmnoq", "Ab c"]
PATTERNS = ["a%", "%b", "%a%", "_b", "a_%", "%", "", "ab", "%é%", "%X_", "__", "a%b%", "%fgh%", "_%_", "A%"]
EXPRESSIONS = ["^a", "b$", "a.*b", "[a-c]+", "^.b", "é|B", "^$", "p|q"]
UNITS = ["second", "minute", "hour", "day", "month", "year"]

# Of each kind: (kinds of the parts, our form, DuckDB's where it differs). `{n}` is a small number, `{p}` a pattern, `{e}` an expression, `{u}` a unit.
FORMS = {
    "long": [
        *[(["long", "long"], form) for form in ("({} + {})", "({} - {})", "({} * {})", "coalesce({}, {})", "nullif({}, {})", "greatest({}, {})", "least({}, {})", "({} & {})", "({} | {})")],
        (["bool", "long", "long"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["bool", "long"], "(CASE WHEN {} THEN {} END)"), (["long", "long", "long"], "(CASE {} WHEN {} THEN {} ELSE 7 END)"),
        (["long"], "abs({})"), (["long"], "(- {})"), (["long"], "({} / 3)", "CAST(trunc({} / 3.0) AS BIGINT)"), (["long"], "({} % 4)"),
        (["text"], "length({})"), (["text", "text"], "strpos({}, {})"), (["text"], "ascii(left({}, 1))"), (["bool"], "CAST({} AS INT)"),
        (["time"], "extract({unit} FROM {})"), (["date"], "extract({dateunit} FROM {})"), (["date"], "extract(year FROM {})"), (["time"], "extract({unit} FROM {})"),
        (["long", "long"], "coalesce(CASE WHEN {} > 3 THEN {} END, 0)"), (["text"], "octet_length({})", "strlen({})"),
    ],
    "double": [
        *[(["double", "double"], form) for form in ("({} + {})", "({} - {})", "({} * {})", "coalesce({}, {})", "nullif({}, {})", "greatest({}, {})", "least({}, {})")],
        (["bool", "double", "double"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["double"], "abs({})"), (["double"], "({} / 4)"), (["double", "double"], "({} / nullif({}, 0))"),
        (["double"], "floor({})"), (["double"], "ceil({})"), (["double"], "trunc({})"), (["double"], "sqrt(abs({}))"), (["long"], "CAST({} AS DOUBLE)"), (["long", "double"], "({} + {})"),
        (["double", "long"], "({} * {})"), (["decimal"], "CAST({} AS DOUBLE)"), (["float"], "CAST({} AS DOUBLE)"), (["long"], "({} / 2.0)", "({} / CAST(2 AS DOUBLE))"), (["double"], "power({}, 2)"), (["double"], "(- {})"),
    ],
    "text": [
        *[(["text"], form) for form in ("upper({})", "lower({})", "substring({}, 1, 1)", "substring({}, 2)", "left({}, 2)", "right({}, 2)", "left({}, -1)", "reverse({})", "trim({})", "ltrim({})", "rtrim({})",
                                        "lpad({}, 4, '*')", "rpad({}, 3, 'xy')", "repeat({}, 2)", "split_part({}, 'a', 1)", "split_part({}, 'b', 2)", "replace({}, 'a', 'ee')", "translate({}, 'ab', 'x')",
                                        "md5({})", "concat({}, '-')", "regexp_replace({}, '{e}', '<->')", "concat_ws('-', {}, 'x')")],
        *[(["text", "text"], form) for form in ("coalesce({}, {})", "({} || {})", "nullif({}, {})", "greatest({}, {})", "least({}, {})", "concat({}, {})", "concat_ws('/', {}, {})")],
        (["bool", "text", "text"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["text", "text", "text"], "replace({}, {}, {})"),
        (["long"], "CAST({} AS VARCHAR)"), (["bool"], "CAST({} AS VARCHAR)"), (["uuid"], "CAST({} AS VARCHAR)"), (["decimal"], "CAST({} AS VARCHAR)"), (["date"], "CAST({} AS VARCHAR)"), (["text"], "regexp_replace({}, '[ab]', 'X', 'g')"),
    ],
    "bool": [
        (["bool", "bool"], "({} AND {})"), (["bool", "bool"], "({} OR {})"), (["bool"], "(NOT {})"), (["bool", "bool"], "({} = {})"), (["bool"], "({} IS TRUE)"), (["bool"], "({} IS NOT TRUE)"), (["bool"], "({} IS FALSE)"),
        (["long", "long", "long"], "({} BETWEEN {} AND {})"), (["double", "double", "double"], "({} NOT BETWEEN {} AND {})"), (["long", "long", "long"], "({} IN ({}, {}))"), (["text", "text", "text"], "({} IN ({}, {}))"),
        (["long", "long", "long"], "({} NOT IN ({}, {}))"), (["long", "long"], "({} IN ({}, NULL))"), (["text", "text"], "({} NOT IN (NULL, {}))"), (["decimal", "decimal"], "({} NOT IN ({}, NULL))"), (["text"], "({} LIKE '{p}')"), (["text"], "({} NOT LIKE '{p}')"), (["text"], "({} ILIKE '{p}')"), (["text"], "({} LIKE 'a!_%' ESCAPE '!')"), (["text"], "({} NOT LIKE '%#%%' ESCAPE '#')"), 
        (["text"], "({} ~ '{e}')", "regexp_matches({}, '{e}')"), (["text"], "({} !~ '{e}')", "(NOT regexp_matches({}, '{e}'))"), (["text", "text"], "starts_with({}, {})"), (["text", "text"], "(strpos({}, {}) > 0)"),
        (["bool", "bool", "bool"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["bool", "bool"], "coalesce({}, {})"),
    ],
    "time": [
        (["time", "time"], "coalesce({}, {})"), (["time", "time"], "greatest({}, {})"), (["time", "time"], "nullif({}, {})"), (["bool", "time", "time"], "(CASE WHEN {} THEN {} ELSE {} END)"),
        (["time"], "date_trunc('{u}', {})", "CAST(date_trunc('{u}', {}) AS TIMESTAMP)"), (["time"], "({} + INTERVAL '{n} hours')"), (["time"], "({} - INTERVAL '{n} days')"), (["time"], "({} + INTERVAL '{n} months')"),
        (["time"], "timestamp_floor('{m}m', {})", "time_bucket(INTERVAL '{m} minutes', {}, TIMESTAMP '1970-01-01')"), (["time"], "dateadd('h', {n}, {})", "({1} + {0} * INTERVAL '1 hour')"),
        (["date"], "CAST({} AS TIMESTAMP)"),
    ],
    "date": [(["time"], "CAST({} AS DATE)"), (["date", "date"], "coalesce({}, {})"), (["date", "date"], "least({}, {})"), (["bool", "date", "date"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["date"], "({} + INTERVAL '{n} days')::date")],
    "decimal": [*[(["decimal", "decimal"], form) for form in ("coalesce({}, {})", "greatest({}, {})", "least({}, {})", "nullif({}, {})", "({} + {})", "({} - {})")], (["bool", "decimal", "decimal"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["decimal"], "abs({})"), (["decimal"], "(- {})")],
    "float": [*[(["float", "float"], form) for form in ("coalesce({}, {})", "greatest({}, {})", "least({}, {})", "nullif({}, {})")], (["bool", "float", "float"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["float"], "abs({})"), (["float"], "(- {})")],
    "uuid": [*[(["uuid", "uuid"], form) for form in ("coalesce({}, {})", "nullif({}, {})")], (["bool", "uuid", "uuid"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["bool", "uuid"], "(CASE WHEN {} THEN {} END)")],
    "nanos": [*[(["nanos", "nanos"], form) for form in ("coalesce({}, {})", "nullif({}, {})", "greatest({}, {})", "least({}, {})")], (["bool", "nanos", "nanos"], "(CASE WHEN {} THEN {} ELSE {} END)"), (["time"], "CAST({} AS TIMESTAMP_NS)")],
}
MARKS, MARK = 0xE000, "[\ue000-\uf8ff]"
"""Characters for private use, from the first on."""
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
AGGREGATES = {
    "long": ["count({})", "sum({})", "min({})", "max({})", "count(DISTINCT {})", "avg({})", "sum(DISTINCT {})", "bit_and({})", "bit_or({})", "bit_xor({})"],
    "double": ["count({})", "sum({})", "min({})", "max({})", "count(DISTINCT {})", "avg({})", "median({})"],
    "text": ["count({})", "min({})", "max({})", "count(DISTINCT {})", "string_agg({0}, ',' ORDER BY {0})"],
    "bool": ["bool_and({})", "bool_or({})", "count({})"],
    "time": ["min({})", "max({})", "count(DISTINCT {})"],
    "date": ["min({})", "max({})", "count({})"],
    "decimal": ["min({})", "max({})", "count({})", "sum({})", "count(DISTINCT {})"],
    "float": ["min({})", "max({})", "count({})", "sum({})", "count(DISTINCT {})"],
    "uuid": ["count({})", "count(DISTINCT {})", "min({})", "max({})"],
    "nanos": ["min({})", "max({})", "count({})", "count(DISTINCT {})"],
}
STRIDES = [("15m", "15 minutes"), ("1h", "1 hour"), ("1d", "1 day"), ("7h", "7 hours"), ("1M", "1 month"), ("90s", "90 seconds"), ("1w", "7 days")]


@dataclass
class Query:
    ours: str
    theirs: str
    is_ordered: bool = False
    shape: str = ""
    of: "Query" = None
    """With a mark in the place of each constant."""
    kinds: tuple = ()
    """Of the constants."""
    bound: tuple = None
    """Ours with `%s` in the place of each constant, and the values."""


def literal(value, kind):
    if value is None:
        return "NULL"
    if kind == "text":
        return "'" + value.replace("'", "''") + "'"
    if kind in ("double", "float") and value != value:
        return "CAST('NaN' AS DOUBLE)"
    if kind in ("double", "float") and abs(value) == float("inf"):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE)"
    return f"'{value}'" if kind == "uuid" else f"'{value.isoformat()}'" if kind in ("time", "date", "nanos") else str(value).lower()


class Maker:
    """Both texts of a query: they differ where the engines' spellings do. Tables at the end of the list are large: not all is asked of them."""

    def __init__(self, r, tables, start=dt.datetime(2024, 1, 1), large=0, columns=COLUMNS):
        self.r, self.tables, self.start, self.columns = r, tables, start, columns
        self.small = tables[: len(tables) - large]
        self.kinds = []

    # Values and expressions.

    def value(self, kind, is_wild=False):
        r = self.r
        if kind in ("double", "float") and is_wild and r.random() < 0.3:
            return r.choice([float("nan"), float("inf"), float("-inf"), -0.0])
        return {"long": lambda: r.randrange(-5, 20), "double": lambda: r.randrange(-8, 40) / 4, "float": lambda: r.randrange(-8, 40) / 4, "text": lambda: r.choice(TEXTS), "bool": lambda: r.random() < 0.5,
                "time": lambda: self.start + dt.timedelta(seconds=r.randrange(0, 200_000)), "date": lambda: (self.start + dt.timedelta(days=r.randrange(-3, 40))).date(),
                "decimal": lambda: decimal.Decimal(r.choice([0, 1250, -1250, 5, 999999999999, r.randrange(-3000, 9000)])).scaleb(-3), "uuid": lambda: uuid.UUID(r.choice(UUIDS)),
                "nanos": lambda: self.start + dt.timedelta(microseconds=r.choice([0, 1, -1, r.randrange(0, 200_000_000_000)]))}[kind]()

    def constant(self, kind):
        """(ours, theirs): DuckDB's 1.5 is a decimal. Which value it has is said at the end."""
        if self.r.random() < 0.03:
            return (f"CAST(NULL AS {NAMES[kind]})",) * 2
        mark = chr(MARKS + len(self.kinds))
        self.kinds.append(kind)
        if kind in ("decimal", "uuid", "nanos", "float"):
            return (f"CAST({mark} AS {NAMES[kind]})",) * 2
        return {"time": "TIMESTAMP ", "date": "DATE "}.get(kind, "") + mark, {"time": f"TIMESTAMP {mark}", "date": f"DATE {mark}", "double": f"CAST({mark} AS DOUBLE)"}.get(kind, mark)

    def varied(self, query):
        """The same query with values by chance for its constants."""
        of = query.of or query
        values = [self.value(kind) for kind in of.kinds]
        place = lambda mark: ord(mark[-1]) - MARKS
        put = lambda text: re.sub(MARK, lambda m: literal(values[place(m[0])], of.kinds[place(m[0])]), text)
        typed = re.compile(f"(?:TIMESTAMP |DATE )?({MARK})")
        bound = typed.sub("%s", of.ours.replace("%", "%%")), [values[place(mark)] for mark in typed.findall(of.ours)]
        return replace(of, ours=put(of.ours), theirs=put(of.theirs), of=of, bound=bound)

    def names(self, side="", columns=None):
        return [(side + n, k) for n, k in (columns or self.columns).items()]

    def fill(self, form):
        """Numbers and texts put where a form asks for them, the same in both spellings."""
        r = self.r
        ours, theirs = form[1], form[-1]
        for mark, words in (("{n}", range(1, 30)), ("{m}", [5, 15, 60, 7]), ("{p}", PATTERNS), ("{e}", EXPRESSIONS), ("{u}", UNITS),
                            ("{unit}", ["year", "month", "day", "hour", "minute", "dow", "doy", "quarter", "week", "isodow"]), ("{dateunit}", ["month", "day", "dow", "doy", "quarter"])):
            if mark in ours:
                word = str(r.choice(words))
                ours, theirs = ours.replace(mark, word), theirs.replace(mark, word)
        return ours, theirs

    def expr(self, kind, names, depth=2):
        """(ours, theirs)"""
        r = self.r
        columns = [n for n, k in names if k == kind]
        if depth == 0 or r.random() < 0.35:
            if kind == "bool" and r.random() < 0.7:
                return self.simple(names)
            if columns and r.random() < 0.8:
                return (c := r.choice(columns)), c
            return self.constant(kind)
        if kind == "bool" and r.random() < 0.4:
            other = r.choice(KINDS)
            if r.random() < 0.3:
                e, word = self.expr(other, names, depth - 1), r.choice(["IS NULL", "IS NOT NULL"])
                return f"({e[0]} {word})", f"({e[1]} {word})"
            word, a, b = r.choice(COMPARISONS), self.expr(other, names, depth - 1), self.expr(other, names, depth - 1)
            return f"({a[0]} {word} {b[0]})", f"({a[1]} {word} {b[1]})"
        form = r.choice(FORMS[kind])
        parts = [self.expr(k, names, depth - 1) for k in form[0]]
        return self.built(form, parts)

    def built(self, form, parts):
        ours, theirs = self.fill(form)
        put = lambda text, i: text.format(*[p[i] for p in parts])
        if "dateadd" in ours:  # the number comes first there
            count = ours.split(", ")[1]
            return put(ours, 0), theirs.format(count, parts[0][1])
        return put(ours, 0), put(theirs, 1)

    def simple(self, names):
        """A column beside constants: what scans answer themselves."""
        r = self.r
        name, kind = r.choice(names)
        if kind == "bool":
            text = r.choice(["{n}", "NOT {n}", "{n} = {c}", "{n} IS NULL", "{n} IS NOT TRUE"])
        elif kind == "text":
            text = r.choice(["{n} = {c}", "{n} <> {c}", "{n} IN ({c}, {c}, {c})", "{n} NOT IN ({c}, {c})", "{n} IS NULL", "{n} < {c}", "{n} >= {c}", "{n} LIKE '{p}'", "{n} NOT LIKE '{p}'", "{n} ILIKE '{p}'"])
        else:
            text = r.choice(["{n} = {c}", "{n} <> {c}", "{n} < {c}", "{n} <= {c}", "{n} > {c}", "{n} >= {c}", "{n} IN ({c}, {c}, {c})", "{n} NOT IN ({c}, {c})", "{n} IS NULL", "{n} IS NOT NULL",
                             "{n} BETWEEN {c} AND {c}", "{n} NOT BETWEEN {c} AND {c}", "{n} IS DISTINCT FROM {c}", "{c} < {n}"])
            if kind in ("time", "nanos") and "BETWEEN" in text:
                text = "{n} >= {c}"
        text = text.replace("{n}", name).replace("{p}", r.choice(PATTERNS))
        ours = theirs = f"({text})"
        for _ in range(text.count("{c}")):
            c = self.constant(kind)
            if kind in ("time", "date") and r.random() < 0.5:
                c = c[0].split(" ")[-1] if "CAST" not in c[0] else c[0], c[1]
            ours, theirs = ours.replace("{c}", c[0], 1), theirs.replace("{c}", c[1], 1)
        return ours, theirs

    def aggregate(self, names, depth=1):
        r = self.r
        kind = r.choice(["long", "long", "double", "double", "text", "bool", "time", "date", "decimal", "uuid", "nanos", "float"])
        if r.random() < 0.1:
            form, e = "count(*)", ("", "")
        else:
            form, e = r.choice(AGGREGATES[kind]), self.expr(kind, names, depth)
        condition = self.expr("bool", names, 1) if r.random() < 0.2 else None
        return tuple(form.format(e[i]) + (f" FILTER (WHERE {condition[i]})" if condition else "") for i in (0, 1))

    # Where rows come from: (ours, theirs, names).

    def source(self, tables=None):
        r = self.r
        tables = tables or self.tables
        t, pick = r.choice(tables), r.random()
        if pick < 0.45:
            return t, t, self.names()
        if pick < 0.6:
            return self.derived(t)
        u = r.choice(self.small)
        t = r.choice(self.small)
        kind = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"] if len(self.small) > 1 else ["JOIN", "LEFT JOIN"])
        names = self.names("l.") + self.names("r.")
        if kind == "CROSS JOIN":
            t = self.small[min(2, len(self.small) - 1)]
            return f"{t} l CROSS JOIN {u} r", f"{t} l CROSS JOIN {u} r", names
        on = r.choice(["l.a = r.a AND l.s = r.s", "l.s = r.s AND l.b = r.b", "l.id = r.id", "l.d = r.d AND l.a = r.b", "l.ts = r.ts", "l.v = r.s AND l.f = r.f AND l.i = r.i", "l.x = r.x AND l.i = r.i", "l.g = r.g AND l.h = r.h", "l.m = r.m", "l.w = r.w", "l.h = r.y AND l.y = r.h AND l.e = r.x"])
        more = ("", "")
        if r.random() < 0.3:
            e = self.expr("bool", names, 1)
            more = tuple(f" AND {e[i]}" for i in (0, 1))
        return *[f"{t} l {kind} {u} r ON {on}{more[i]}" for i in (0, 1)], names

    def derived(self, t):
        """A sub-query or a CTE's like, of columns of several kinds."""
        r = self.r
        kinds = [r.choice(KINDS) for _ in range(r.randrange(2, 5))]
        items = [self.expr(k, self.names(), 1) for k in kinds]
        called = [f"c{n}" for n in range(len(kinds))] if r.random() < 0.6 else r.sample(sorted(self.columns), len(kinds))
        names = [(f"q.{name}", k) for name, k in zip(called, kinds)]
        where = self.expr("bool", self.names(), 1)
        pick = r.random()
        text = []
        if pick < 0.5:
            word = r.choice(["", "DISTINCT "])
            text = [f"(SELECT {word}" + ", ".join(f"{e[i]} AS {name}" for name, e in zip(called, items)) + f" FROM {t} WHERE {where[i]}) q" for i in (0, 1)]
        else:
            aggregates = []
            for n in range(2):
                e = self.expr("long", self.names(), 1)
                form = r.choice(["count({})", "sum({})", "max({})"])
                aggregates.append(tuple(form.format(e[i]) for i in (0, 1)))
                names.append((f"q.g{n}", "long"))
            keys = ", ".join(str(n + 1) for n in range(len(kinds)))
            text = ["(SELECT " + ", ".join([f"{e[i]} AS {name}" for name, e in zip(called, items)] + [f"{e[i]} AS g{n}" for n, e in enumerate(aggregates)]) +
                    f" FROM {t} WHERE {where[i]} GROUP BY {keys}) q" for i in (0, 1)]
        return text[0], text[1], names

    # Shapes of queries.

    def listed(self, names, most=4, depth=2):
        return [self.expr(self.r.choice(KINDS), names, depth) for _ in range(self.r.randrange(1, most))]

    def both(self, write, is_ordered=False):
        return Query(write(0), write(1), is_ordered)

    def selected(self, items, i):
        return ", ".join(f"{e[i]} AS {self.called[n]}" for n, e in enumerate(items))

    def tail(self):
        source = self.source()
        where = self.expr("bool", source[2]) if self.r.random() < 0.75 else ("true", "true")
        return source[2], [f" FROM {source[i]} WHERE {where[i]}" for i in (0, 1)]

    def plain(self):
        names, tail = self.tail()
        items = self.listed(names)
        return self.both(lambda i: f"SELECT {self.selected(items, i)}{tail[i]}")

    def distinct(self):
        names, tail = self.tail()
        items = self.listed(names)
        return self.both(lambda i: f"SELECT DISTINCT {self.selected(items, i)}{tail[i]}")

    def distinct_on(self):
        t = self.r.choice(self.tables)
        keys = [e for e in self.listed(self.names(), 3, 1) if self.names_column(e)] or [("a", "a")]
        items, where = self.listed(self.names()), self.expr("bool", self.names(), 1)
        order = self.r.choice(["ts, id", "ts DESC, id", "a NULLS FIRST, id DESC", "x DESC NULLS LAST, s NULLS FIRST, id"])
        on = lambda i: ", ".join(e[i] for e in keys)
        return self.both(lambda i: f"SELECT DISTINCT ON ({on(i)}) id, {self.selected(items, i)} FROM {t} WHERE {where[i]} ORDER BY {on(i)}, {order}")

    def total(self):
        names, tail = self.tail()
        items = [self.aggregate(names) for _ in range(self.r.randrange(1, 4))]
        return self.both(lambda i: f"SELECT {self.selected(items, i)}{tail[i]}")

    def grouped(self):
        r = self.r
        names, tail = self.tail()
        items, aggregates = self.listed(names, 4, 1), [self.aggregate(names) for _ in range(r.randrange(1, 3))]
        having = ("", "")
        if r.random() < 0.3:
            a, n = self.aggregate(names), r.randrange(0, 4)
            having = r.choice([(" HAVING count(*) > 1",) * 2, tuple(f" HAVING {a[i]} IS NOT NULL" for i in (0, 1)), tuple(f" HAVING sum(1) + {n} > 3" for i in (0, 1))])
        keys = ", ".join(str(n + 1) for n in range(len(items)))
        if r.random() < 0.15 and not having[0] and all(map(self.names_column, items)):
            # GROUP BY may be left out here.
            return Query(f"SELECT {self.selected(items + aggregates, 0)}{tail[0]}", f"SELECT {self.selected(items + aggregates, 1)}{tail[1]} GROUP BY {keys}")
        return self.both(lambda i: f"SELECT {self.selected(items + aggregates, i)}{tail[i]} GROUP BY {keys}{having[i]}")

    @staticmethod
    def names_column(e):
        """Whether an expression is no constant, told by its text."""
        words = re.findall(r"[a-z_.0-9]+", re.sub(r"'[^']*'", "", e[0]))
        return any(w.split(".")[-1] in COLUMNS or re.fullmatch(r"q\.\w+", w) for w in words)

    def sets(self):
        """GROUPING SETS, ROLLUP, CUBE."""
        r = self.r
        t = r.choice(self.tables)
        names = self.names()
        keys = r.sample([n for n, k in names if n != "id"], r.randrange(1, 4))
        all_keys = ", ".join(keys)
        some = lambda: "(" + ", ".join(r.sample(keys, r.randrange(0, len(keys) + 1))) + ")"
        form = r.choice([f"ROLLUP ({all_keys})", f"CUBE ({all_keys})", "GROUPING SETS (" + ", ".join({some() for _ in range(r.randrange(1, 4))} | {f"({all_keys})"}) + ")"])
        aggregates, where = [self.aggregate(names) for _ in range(r.randrange(1, 3))], self.expr("bool", names, 1)
        grouping = f", grouping({keys[0]}) AS g" if r.random() < 0.5 else ""
        return self.both(lambda i: f"SELECT {all_keys}{grouping}, {self.selected(aggregates, i)} FROM {t} WHERE {where[i]} GROUP BY {form}")

    def windowed(self, names):
        """(ours, theirs) of one window function; `id` makes orders whole."""
        r = self.r
        part = self.expr(r.choice(["long", "text", "bool", "date"]), names, 1)
        id = next(n for n, _ in names if n.split(".")[-1] == "id")
        order, column, direction = r.choice(["x", "a", "ts", "s", "d"]), id.removesuffix("id"), r.choice(["", " DESC"])
        nulls = r.choice(["", " NULLS FIRST", " NULLS LAST"])
        kind = r.choice(["long", "double", "text", "time"])
        value = self.expr(kind, names, 1)
        by = f"{column}{order}{direction}{nulls}" + (f", {id}" if True else "")
        whole = r.choice(["{w}row_number()", "{w}rank()", "{w}dense_rank()", "{w}ntile(3)", "{w}percent_rank()", "{w}cume_dist()", "lag({})", "lead({})", "lag({}, 2)", "lead({}, 2, {d})", "framed", "framed", "framed", "ties", "range"])
        over = lambda i, by, frame: f" OVER ({f'PARTITION BY {part[i]} ' if has_part else ''}ORDER BY {by}{frame})"
        has_part = r.random() < 0.7
        if whole == "ties":
            # Equal rows are peers.
            form, by = r.choice(["rank()", "dense_rank()", "sum({})", "count({})", "cume_dist()"]), f"{column}{order}{direction}{nulls}"
            value = self.expr("long", names, 1)
            return tuple(form.format(value[i]) + over(i, by, "") for i in (0, 1))
        if whole == "range":
            value, by = self.expr("long", names, 1), f"{column}{r.choice(['a', 'i'])}{direction}{nulls}"
            frame = r.choice([" RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING", " RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING", " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                              " RANGE BETWEEN 1 FOLLOWING AND 4 FOLLOWING", " GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING"])
            form = r.choice(["sum({})", "count({})", "min({})", "max({})", "count(*)"])
            return tuple(form.format(value[i]) + over(i, by, frame) for i in (0, 1))
        if whole == "framed":
            frame = r.choice(["", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
                              " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING"])
            forms = ["count({})", "min({})", "max({})", "first_value({})", "last_value({})", "nth_value({}, 2)"] + (["sum({})", "avg({})"] if kind == "long" else [])
            form = r.choice(forms)
            return tuple(form.format(value[i]) + over(i, by, frame) for i in (0, 1))
        default = self.constant(kind)
        return tuple(whole.replace("{w}", "").replace("{d}", default[i]).format(value[i]) + over(i, by, "") for i in (0, 1))

    def window(self):
        r = self.r
        names = self.names()
        t = r.choice(self.tables)
        where = self.expr("bool", names, 1)
        windows = [self.windowed(names) for _ in range(r.randrange(1, 3))]
        qualify = ("", "")
        if r.random() < 0.3:
            w, n = self.windowed(names), r.randrange(1, 4)
            qualify = tuple(f" QUALIFY {w[i]} IS NOT NULL" for i in (0, 1)) if r.random() < 0.5 else (f" QUALIFY row_number() OVER (PARTITION BY s ORDER BY ts, id) <= {n}",) * 2
        return self.both(lambda i: f"SELECT id, {self.selected(windows, i)} FROM {t} WHERE {where[i]}{qualify[i]}")

    def window_of_join(self):
        names = self.names("l.") + self.names("r.")
        t, u = self.r.choice(self.small), self.r.choice(self.small)
        part, value = self.expr("text", names, 1), self.expr("long", names, 1)
        form = self.r.choice(["sum({})", "count({})", "lag({})", "max({})", "row_number()"])
        return self.both(lambda i: f"SELECT l.id, r.id AS rid, {form.format(value[i])} OVER (PARTITION BY {part[i]} ORDER BY l.id, r.id) AS w FROM {t} l JOIN {u} r ON l.a = r.a AND l.s = r.s")

    def several(self):
        """Two or three queries and operations of sets."""
        r = self.r
        kinds = [r.choice(KINDS) for _ in range(r.randrange(1, 3))]
        sides = []
        for _ in range(r.choice([2, 2, 3])):
            source = self.source(self.small)
            where = self.expr("bool", source[2], 1)
            items = [self.expr(k, source[2], 1) for k in kinds]
            sides.append([f"SELECT {self.selected(items, i)} FROM {source[i]} WHERE {where[i]}" for i in (0, 1)])
        words = [r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"]) for _ in sides]

        def write(i):
            text = sides[0][i]
            for side, word in zip(sides[1:], words):
                text = f"({text}) {word} ({side[i]})" if len(sides) == 3 else f"{text} {word} {side[i]}"
            return text
        return self.both(write)

    def asked(self):
        """Sub-queries among what is selected and in WHERE."""
        r = self.r
        t, u = r.choice(self.small), r.choice(self.small)
        names, inner = self.names("o."), self.expr("bool", self.names("i."), 1)
        key = r.choice(["a", "s", "b", "d", "v"])
        forms = ["EXISTS (SELECT 1 FROM {u} i WHERE i.{key} = o.{key} AND {c})", "NOT EXISTS (SELECT 1 FROM {u} i WHERE i.{key} = o.{key} AND {c})",
                 "o.{key} IN (SELECT i.{key} FROM {u} i WHERE {c})", "o.{key} NOT IN (SELECT i.{key} FROM {u} i WHERE {c})",
                 "(SELECT max(i.a) FROM {u} i WHERE i.{key} = o.{key} AND {c}) > o.a", "(SELECT count(*) FROM {u} i WHERE i.{key} = o.{key}) > 2",
                 "(SELECT max(i.a) FROM {u} i WHERE i.{key} < o.{key} AND {c}) > o.a", "(SELECT count(*) FROM {u} i WHERE i.ts < o.ts AND {c}) > 3",
                 "EXISTS (SELECT 1 FROM {u} i WHERE i.{key} < o.{key} AND {c})", "o.a IN (SELECT i.a FROM {u} i WHERE i.{key} <> o.{key} AND {c})",
                 "(SELECT i.a FROM {u} i WHERE i.{key} = o.{key} AND {c} ORDER BY i.a LIMIT 1) > o.b",
                 "(SELECT sum(g.c) FROM (SELECT i.b, count(*) AS c FROM {u} i WHERE i.{key} <= o.{key} GROUP BY i.b) g WHERE g.b < o.b) > 1",
                 "(SELECT count(*) FROM (SELECT i.a FROM {u} i WHERE i.a < o.a UNION SELECT i.b FROM {u} i WHERE {c}) w) > o.b",
                 "o.a > ALL (SELECT i.a FROM {u} i WHERE {c})", "o.a = ANY (SELECT i.b FROM {u} i WHERE i.{key} = o.{key})", "(o.a, o.s) IN (SELECT i.a, i.s FROM {u} i WHERE {c})",
                 "o.a > (SELECT avg(i.a) FROM {u} i WHERE {c})"]
        chosen = r.choice(forms)
        if r.random() < 0.4:
            # What comes out may have the name of any column.
            name = r.choice([key, key, *self.columns])
            chosen = re.sub(r"SELECT (1|i\.[a-z]|i\.\{key\}|[a-z]+\([i.a*]+\))(?= FROM)", rf"SELECT \1 AS {name}", chosen)
        form = lambda i: chosen.replace("{u}", u).replace("{key}", key).replace("{c}", inner[i])
        if r.random() < 0.5 and "ALL" not in chosen and "ANY" not in chosen and "(o.a, o.s)" not in chosen:
            e = self.expr("long", names, 1)
            return self.both(lambda i: f"SELECT o.id, {e[i]} AS c, {form(i)} AS found FROM {t} o")
        where = self.expr("bool", names, 1)
        return self.both(lambda i: f"SELECT o.id, o.b, o.s FROM {t} o WHERE {form(i)} AND {where[i]}")

    def joined(self):
        """USING and NATURAL joins of two tables or three: columns of the join, of its sides, and all of them."""
        r = self.r
        keys = r.choice([["a"], ["s"], ["a", "s"], ["d", "b"], ["g", "h"], ["i", "x"], ["v"], ["m", "f"], ["u"], ["e", "y"], ["w"]])
        sides, tables, names = "pqz"[: r.choice([2, 2, 3])], [], [(k, self.columns[k]) for k in keys]
        for side in sides:
            own = r.sample([c for c in self.columns if c not in keys], 2)
            names += [(f"{side}_{c}", self.columns[c]) for c in own]
            items = [*keys, *(f"{c} AS {side}_{c}" for c in own)]
            r.shuffle(items)
            tables.append(f"(SELECT {', '.join(items)} FROM {r.choice(self.small)}) {side}")
        source = tables[0]
        for table in tables[1:]:
            kind, is_natural = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]), r.random() < 0.3
            source += f" NATURAL {kind} {table}" if is_natural else f" {kind} {table} USING ({', '.join(keys)})"
        of_sides = [(f"{side}.{k}", self.columns[k]) for side in sides for k in keys]
        some = names + r.sample(of_sides, r.randrange(0, len(of_sides)))
        where, pick = self.expr("bool", some, 1), r.random()
        if pick < 0.3:
            return self.both(lambda i: f"SELECT * FROM {source} WHERE {where[i]}")
        if pick < 0.5:
            items = ", ".join(f"{name} AS c{n}" for n, (name, _) in enumerate(some))
            return self.both(lambda i: f"SELECT {items} FROM {source}")
        if pick < 0.8:
            items = self.listed(some)
            return self.both(lambda i: f"SELECT {', '.join(keys)}, {self.selected(items, i)} FROM {source} WHERE {where[i]}")
        aggregate = self.aggregate(some)
        return self.both(lambda i: f"SELECT {', '.join(keys)}, {aggregate[i]} AS g FROM {source} WHERE {where[i]} GROUP BY {', '.join(keys)}")

    def lateral(self):
        """Tables that look at the one before them."""
        r = self.r
        t, u = r.choice(self.small), r.choice(self.small)
        names = self.names("i.") + self.names("o.")
        inner, value = self.expr("bool", names, 2), self.expr("long", names, 1)
        form = r.choice(["SELECT max({v}) AS w, count(*) AS n FROM {u} i WHERE {c}", "SELECT {v} AS w, 1 AS n FROM {u} i WHERE {c} AND i.a = o.a",
                         "SELECT {v} AS w, 1 AS n FROM {u} i WHERE {c} ORDER BY 1 NULLS LAST LIMIT 2", "SELECT i.s, count({v}) AS w, 2 AS n FROM {u} i WHERE {c} GROUP BY i.s"])
        w, n = r.sample(["w", "n", "k", *self.columns], 2)
        form = form.replace(" AS w", f" AS {w}").replace(" AS n", f" AS {n}").replace("SELECT i.s,", "SELECT i.s AS other,")
        join = r.choice(["CROSS JOIN LATERAL ({q}) l", "LEFT JOIN LATERAL ({q}) l ON true", ", LATERAL ({q}) l"])
        query = lambda i: join.replace("{q}", form.replace("{u}", u).replace("{v}", value[i]).replace("{c}", inner[i]))
        return self.both(lambda i: f"SELECT o.ts, o.id, l.{w} AS w, l.{n} AS n FROM {t} o {query(i)}")

    def common(self):
        """WITH, also recursive."""
        r = self.r
        t = r.choice(self.small)
        where, value = self.expr("bool", self.names(), 1), self.expr("long", self.names(), 1)
        if r.random() < 0.3:
            n, step = r.randrange(1, 12), r.randrange(1, 4)
            return self.both(lambda i: f"WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + {step} FROM n WHERE k < {n}) SELECT k, count(t.id) AS c, max({value[i]}) AS m FROM n LEFT JOIN {t} t ON t.a = n.k GROUP BY k")
        form = r.choice(["SELECT p.k, q.k AS j FROM w p JOIN w q ON p.k = q.k AND p.s = q.s", "SELECT k, count(*) AS c FROM w GROUP BY k HAVING count(*) >= (SELECT avg(c) FROM (SELECT count(*) AS c FROM w GROUP BY k) z)",
                         "SELECT s, k FROM w WHERE k IN (SELECT max(k) FROM w)", "SELECT s FROM w EXCEPT SELECT s FROM w WHERE k > 3", "SELECT (SELECT count(*) FROM w z WHERE z.k > w.k) AS above, k FROM w"])
        return self.both(lambda i: f"WITH w AS (SELECT s, {value[i]} AS k FROM {t} WHERE {where[i]}) {form}")

    def limited(self):
        """Some rows of an order that is whole."""
        r = self.r
        source = self.source()
        items = self.listed(source[2], 4, 1)
        where = self.expr("bool", source[2], 1) if r.random() < 0.6 else ("true", "true")
        directions = [(r.choice(["", " DESC"]), r.choice(["FIRST", "LAST"])) for _ in items]
        order = ", ".join(f"{n + 1}{d} NULLS {nulls}" for n, (d, nulls) in enumerate(directions))
        backwards = ", ".join(f"{n + 1}{'' if d else ' DESC'} NULLS {'LAST' if nulls == 'FIRST' else 'FIRST'}" for n, (d, nulls) in enumerate(directions))
        n, m = r.randrange(0, 20), r.randrange(0, 5)
        pick = r.random()
        text = lambda i: f"SELECT {self.selected(items, i)} FROM {source[i]} WHERE {where[i]}"
        if pick < 0.2:
            # The last rows, and those between two places.
            again = ", ".join(f"c{k}{d} NULLS {nulls}" for k, (d, nulls) in enumerate(directions))
            return Query(f"{text(0)} ORDER BY {order} LIMIT -{n}", f"SELECT * FROM ({text(1)} ORDER BY {backwards} LIMIT {n}) ORDER BY {again}", True)
        if pick < 0.35:
            return Query(f"{text(0)} ORDER BY {order} LIMIT {m}, {m + n}", f"{text(1)} ORDER BY {order} LIMIT {n} OFFSET {m}", True)
        return self.both(lambda i: f"{text(i)} ORDER BY {order} LIMIT {n} OFFSET {m}", True)

    def newest(self):
        """ORDER BY the designated timestamp, from either end; `id` decides among equal ones in the outer query."""
        r = self.r
        t, where, n = r.choice(self.tables), self.expr("bool", self.names(), 1), r.randrange(1, 30)
        direction = r.choice(["", " DESC"])
        return self.both(lambda i: f"SELECT ts, id, a, s FROM {t} WHERE {where[i]} ORDER BY ts{direction}, id{direction} LIMIT {n}", True)

    def topped(self):
        """Groups in order of aggregates and keys, the first of them or those from a place on."""
        r = self.r
        t, where = r.choice(self.tables), self.expr("bool", self.names(), 1)
        keys = r.sample(["a", "s", "v", "i", "f", "d", "b", "u", "h", "y", "m", "g", "w"], r.randrange(1, 4))
        forms = r.sample(["count(*)", "count(a)", "sum(a)", "avg(i)", "min(i)", "max(x)", "min(x)", "max(u)", "min(d)", "min(v)", "count(DISTINCT b)", "sum(h)", "avg(y)", "max(e)", "sum(m)", "min(m)", "max(w)", "count(DISTINCT g)", "count(DISTINCT h)", "count(*) FILTER (WHERE f)"], r.randrange(1, 4))
        aggregates = [f"c{k}" for k in range(len(forms))]
        by = r.choice([aggregates, r.sample(keys + aggregates, len(keys) + len(aggregates)), keys])
        order = ", ".join(f"{k}{r.choice(['', ' DESC'])} NULLS {r.choice(['FIRST', 'LAST'])}" for k in by + [k for k in keys if k not in by])
        having = r.choice(["", "", "", " HAVING count(*) > 1", " HAVING min(i) IS NOT NULL"])
        n, m = r.choice([0, 1, 2, 3, 5, 8, 12, 100]), r.choice([0, 0, 0, 1, 3])
        items = ", ".join(keys + [f"{form} AS c{k}" for k, form in enumerate(forms)])
        groups = lambda i: f"SELECT {items} FROM {t} WHERE {where[i]} GROUP BY {', '.join(keys)}{having} ORDER BY {order} LIMIT {n} OFFSET {m}"
        if r.random() < 0.2:
            # Of fewer columns, under other names.
            return self.both(lambda i: f"SELECT q.c0 AS n, q.{keys[0]} AS k FROM ({groups(i)}) q")
        return self.both(groups, True)

    # Clauses of time series.

    def latest_on(self):
        r = self.r
        t, where = r.choice(self.tables), self.expr("bool", self.names(), 1) if r.random() < 0.7 else ("true", "true")
        keys = ", ".join(r.sample(["s", "a", "f", "v", "i", "d", "h", "m", "g", "w"], r.randrange(1, 3)))
        items = self.listed(self.names(), 4, 1)
        return Query(f"SELECT id, ts, {self.selected(items, 0)} FROM {t} WHERE {where[0]} LATEST ON ts PARTITION BY {keys}",
                     f"SELECT id, ts, {self.selected(items, 1)} FROM {t} WHERE {where[1]} QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY ts DESC, id DESC) = 1")

    def by_time(self):
        """ASOF and LT JOIN, with TOLERANCE; DuckDB is given one row of each time and key."""
        r = self.r
        t, u = r.choice(self.tables), r.choice(self.tables)
        where, inner = self.expr("bool", self.names("l."), 1), self.expr("bool", self.names(), 1) if r.random() < 0.5 else ("true", "true")
        word, op = r.choice([("ASOF", ">="), ("LT", ">")])
        keys = r.choice([[], ["s"], ["a"], ["s", "f"], ["v"]])
        on = f" ON ({', '.join(keys)})" if keys else ""
        and_on = "".join(f"l.{k} = r.{k} AND " for k in keys)
        by = "".join(f"{k}, " for k in keys)
        last = f"(SELECT * FROM {u} WHERE {inner[1]} QUALIFY row_number() OVER (PARTITION BY {by}ts ORDER BY id DESC) = 1) r"
        minutes = r.choice([None, None, 5, 90, 2000])
        tolerance = f" TOLERANCE {minutes}m" if minutes else ""
        near = lambda name: f"CASE WHEN l.ts - r.ts <= INTERVAL '{minutes} minutes' THEN r.{name} END" if minutes else f"r.{name}"
        right = u if inner[0] == "true" else f"(SELECT * FROM {u} WHERE {inner[0]})"
        return Query(f"SELECT l.id, r.id AS rid, r.a AS ra, r.v AS rv, r.ts AS rts FROM {t} l {word} JOIN {right} r{on}{tolerance} WHERE {where[0]}",
                     f"SELECT l.id, {near('id')} AS rid, {near('a')} AS ra, {near('v')} AS rv, {near('ts')} AS rts FROM {t} l ASOF LEFT JOIN {last} ON {and_on}l.ts {op} r.ts WHERE {where[1]}")

    def window_join(self):
        r = self.r
        t, u = r.choice(self.small), r.choice(self.small)
        where = self.expr("bool", self.names("l."), 1)
        value = self.expr("long", self.names("r."), 1)
        form = r.choice(["count(r.id)", "sum({})", "min({})", "max({})", "avg({})", "count({})"])
        before, after = r.randrange(0, 240), r.randrange(0, 120)
        keys = r.choice([[], ["s"], ["a"]])
        on, equal = (f" ON ({', '.join(keys)})" if keys else ""), "".join(f" AND l.{k} = r.{k}" for k in keys)
        low, high = f"l.ts - INTERVAL '{before} minutes'", f"l.ts + INTERVAL '{after} minutes'"
        inside = f"r.ts BETWEEN {low} AND {high}"
        includes = r.random() < 0.4
        if includes:
            # The row that prevails when the window begins: the last one up to then.
            z = "".join(f" AND l.{k} = z.{k}" for k in keys)
            inside = f"({inside} OR r.id = (SELECT z.id FROM {u} z WHERE z.ts < {low}{z} AND NOT EXISTS (SELECT 1 FROM {u} y WHERE y.ts = {low}{z.replace('z.', 'y.')}) ORDER BY z.ts DESC, z.id DESC LIMIT 1))"
        return Query(f"SELECT l.id, l.ts, {form.format(value[0])} AS c FROM {t} l WINDOW JOIN {u} r{on} RANGE BETWEEN {before} minutes PRECEDING AND {after} minutes FOLLOWING {'INCLUDE' if includes else 'EXCLUDE'} PREVAILING WHERE {where[0]}",
                     f"SELECT l.id, l.ts, (SELECT {form.format(value[1])} FROM {u} r WHERE {inside}{equal}) AS c FROM {t} l WHERE {where[1]}")

    def sampled(self):
        r = self.r
        t, where = r.choice(self.tables), self.expr("bool", self.names(), 1)
        aggregates = [self.aggregate(self.names()) for _ in range(r.randrange(1, 3))]
        stride, interval = r.choice(STRIDES)
        origin = "1969-12-29" if stride == "1w" else "1970-01-01"
        align = ""
        if stride in ("1h", "1d", "7h") and r.random() < 0.3:
            align, origin = " ALIGN TO CALENDAR WITH OFFSET '00:20'", "1970-01-01T00:20:00"
        keys = r.choice([[], [], ["s"], ["f"], ["a"], ["s", "f"], ["v"]])
        by = "".join(f"{k}, " for k in keys)
        bucket = f"time_bucket(INTERVAL '{interval}', ts, TIMESTAMP '{origin}')"
        having = " HAVING count(*) > 1" if r.random() < 0.15 else ""
        return Query(f"SELECT ts, {by}{self.selected(aggregates, 0)} FROM {t} WHERE {where[0]} SAMPLE BY {stride}{align}{having}",
                     f"SELECT {bucket} AS t, {by}{self.selected(aggregates, 1)} FROM {t} WHERE {where[1]} GROUP BY {', '.join(str(n + 1) for n in range(1 + len(keys)))}{having}")

    def filled(self):
        """SAMPLE BY with FILL: every key in every bucket."""
        r = self.r
        t, where = r.choice(self.tables), self.expr("bool", self.names(), 1)
        e = self.expr("long", self.names(), 1)
        form = r.choice(["count({})", "sum({})", "max({})"])
        stride, interval = r.choice([("1h", "1 hour"), ("1d", "1 day"), ("7h", "7 hours")])
        key = r.choice([None, "s", "f", "a"])
        fill, value = r.choice([("NULL", "g.c"), ("-3", "CASE WHEN g.k IS NULL THEN -3 ELSE g.c END"),
                                ("PREV", "last")])
        bucket = f"time_bucket(INTERVAL '{interval}', ts, TIMESTAMP '1970-01-01')"
        k = key or "0"
        grouped = f"SELECT {bucket} AS t, {k} AS k, {form.format(e[1])} AS c, count(*) AS n FROM {t} WHERE {where[1]} GROUP BY 1, 2"
        grid = "SELECT b.t, k.k FROM (SELECT unnest(generate_series((SELECT min(t) FROM g), (SELECT max(t) FROM g), INTERVAL '" + interval + "')) AS t) b, (SELECT DISTINCT k FROM g) k"
        value = {"NULL": "g.c", "-3": "CASE WHEN g.n IS NULL THEN -3 ELSE g.c END",
                 "PREV": "CASE WHEN g.n IS NULL THEN (SELECT z.c FROM g z WHERE z.k IS NOT DISTINCT FROM w.k AND z.t < w.t ORDER BY z.t DESC LIMIT 1) ELSE g.c END"}[fill]
        theirs = f"WITH g AS ({grouped}), w AS ({grid}) SELECT w.t{', w.k' if key else ''}, {value} AS c FROM w LEFT JOIN g ON g.t = w.t AND g.k IS NOT DISTINCT FROM w.k"
        return Query(f"SELECT ts, {f'{key}, ' if key else ''}{form.format(e[0])} AS c FROM {t} WHERE {where[0]} SAMPLE BY {stride} FILL({fill})", theirs)

    def interval(self):
        """ts IN '2024-01-01;3h' and its like."""
        r = self.r
        t, where = r.choice(self.tables), self.expr("bool", self.names(), 1)
        day = self.start.replace(hour=0) + dt.timedelta(days=r.randrange(-1, 3))
        hours, count = r.randrange(1, 30), r.randrange(1, 4)
        between = lambda lo, hi: f"(ts >= TIMESTAMP '{lo.isoformat()}' AND ts < TIMESTAMP '{hi.isoformat()}')"
        h = dt.timedelta(hours=1)
        at = day + dt.timedelta(hours=r.randrange(0, 24))
        ours, theirs = r.choice([
            (f"'{day:%Y-%m-%d}'", between(day, day + 24 * h)), (f"'{at:%Y-%m-%dT%H}'", between(at, at + h)), (f"'{day:%Y-%m-%d};{hours}h'", between(day, day + (24 + hours) * h)),
            (f"'{at:%Y-%m-%dT%H:%M};{hours}h'", between(at, at + hours * h + dt.timedelta(minutes=1))),
            (f"'{at:%Y-%m-%dT%H};1h;12h;{count}'", "(" + " OR ".join(between(at + n * 12 * h, at + n * 12 * h + 2 * h) for n in range(count)) + ")"),
            (f"('{day:%Y-%m-%d}', '{at:%Y-%m-%dT%H}:30')", f"ts IN (TIMESTAMP '{day.isoformat()}', TIMESTAMP '{(at + h / 2).isoformat()}')"),
        ])
        word, wrap = r.choice([("", "{}"), ("NOT ", "NOT {}")])
        return Query(f"SELECT id, ts, a FROM {t} WHERE ts {word}IN {ours} AND {where[0]}", f"SELECT id, ts, a FROM {t} WHERE {wrap.format(theirs)} AND {where[1]}")

    def pivoted(self):
        r = self.r
        t = r.choice(self.tables)
        key, by = r.choice([("s", "f"), ("f", "s"), ("a", "s"), ("s", "d")])
        kind = dict(self.columns)[key]
        values = list(dict.fromkeys(literal(self.value(kind), kind) for _ in range(r.randrange(1, 4))))
        form = r.choice(["sum(a)", "count(b)", "max(x)", "min(v)", "count(DISTINCT i)"])
        cells = ", ".join(f"{form} FILTER (WHERE {key} = {v})" for v in values)
        return Query(f"SELECT * FROM (SELECT {key}, {by}, a, b, x, v, i FROM {t}) PIVOT ({form} FOR {key} IN ({', '.join(values)}) GROUP BY {by})", f"SELECT {by}, {cells} FROM {t} GROUP BY {by}")

    SHAPES = {"plain": 3, "distinct": 1, "distinct_on": 1, "total": 2, "grouped": 3, "sets": 1, "window": 3, "window_of_join": 1, "several": 2, "asked": 2, "joined": 2, "lateral": 1, "common": 1, "limited": 2, "newest": 1, "topped": 2,
              "latest_on": 1, "by_time": 2, "window_join": 1, "sampled": 2, "filled": 1, "interval": 1, "pivoted": 1}

    CALLED = {"plain", "distinct", "total", "grouped", "window", "latest_on", "sampled", "sets"}
    """Shapes in which no clause goes by the names of what is selected."""

    def query(self):
        shape = self.r.choices(list(self.SHAPES), list(self.SHAPES.values()))[0]
        self.kinds = []
        # What is computed may have the name of a column.
        is_called = shape in self.CALLED and self.r.random() < 0.3
        self.called = self.r.sample(sorted(self.columns), len(self.columns)) if is_called else [f"c{n}" for n in range(len(self.columns))]
        made = getattr(self, shape)()
        return self.varied(replace(made, shape=shape, kinds=tuple(self.kinds)))

    def change(self, table, number):
        """A statement that changes rows, the same for both. A changed row counts as the newest of its time, as its `id` says."""
        r = self.r
        self.kinds = []
        where = self.expr("bool", self.names(), 1)
        kind = r.choice(["a", "b", "x", "s", "v", "f", "u", "d", "i", "m", "g", "w"])
        e = self.expr(self.columns[kind], self.names(), 1)
        few = f"id % 7 = {r.randrange(0, 7)} AND " if r.random() < 0.9 else ""
        if r.random() < 0.3:
            # With the rows of another table, of which one at most has the `id`.
            other, names = r.choice(self.small), self.names(f"{table}.") + self.names("o.")
            where, e = self.expr("bool", names, 1), self.expr(self.columns[kind], names, 1)
            on = f"{other} o WHERE o.id = {table}.id AND {table}.{few}" if few else f"{other} o WHERE o.id = {table}.id AND "
            if r.random() < 0.3:
                made = Query(f"DELETE FROM {table} USING {on}{where[0]}", f"DELETE FROM {table} USING {on}{where[1]}")
            else:
                made = Query(f"UPDATE {table} SET {kind} = {e[0]}, id = {table}.id + {number} FROM {on}{where[0]}", f"UPDATE {table} SET {kind} = {e[1]}, id = {table}.id + {number} FROM {on}{where[1]}")
        elif r.random() < 0.3:
            made = Query(f"DELETE FROM {table} WHERE {few}{where[0]}", f"DELETE FROM {table} WHERE {few}{where[1]}")
        else:
            made = Query(f"UPDATE {table} SET {kind} = {e[0]}, id = id + {number} WHERE {few}{where[0]}", f"UPDATE {table} SET {kind} = {e[1]}, id = id + {number} WHERE {few}{where[1]}")
        return self.varied(replace(made, kinds=tuple(self.kinds)))

    def rows(self, first, count, is_wild=False, is_rising=False):
        """Values in the order of `COLUMNS`: times and keys by chance, or rising by row as they do in blocks with bounds worth having."""
        r, kinds = self.r, list(self.columns.values())
        for n in range(count):
            row = [first + n, self.value("time")] + [None if r.random() < 0.15 else self.value(k, is_wild) for k in kinds[2:]]
            if is_rising:
                row[1] = self.start + dt.timedelta(seconds=n // 3 * 40)
                row[2] = None if r.random() < 0.1 else n // 100 - 5
            yield row

    def insert(self, table, rows):
        """Statement with these rows, the same for both."""
        values = ("(" + ", ".join(literal(v, k) for v, k in zip(row, self.columns.values())) + ")" for row in rows)
        return f"INSERT INTO {table} ({', '.join(self.columns)}) VALUES {', '.join(values)}"
