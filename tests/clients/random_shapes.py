"""The statements of `random_statements.py`: one method for each shape."""

from random_forms import NAMES
from random_statements import COLUMNS, KINDS, SELECTED, Maker, Statement

CHANGED = "changed"
KEYED = "keyed"
"""The table with a primary key, for ON CONFLICT."""


class Shapes(Maker):
    SHAPES = dict(plain=6, ordered=4, distinct=1, distinct_on=2, total=3, grouped=5, grouping_sets=3, windows=6, moving=3, windows_of_groups=1, set_operations=3, values=1, recursive=1, rows=1, lateral=2, arrays=2, common=2,
                  insert=1, insert_values=1, update=2, update_from=1, delete=2, delete_using=1, merge=2, conflict=1)

    def statement(self):
        self.aliases, self.constants, self.depth = 0, [], 0
        shape = self.r.choices(list(self.SHAPES), list(self.SHAPES.values()))[0]
        return self.finished(getattr(self, shape)(), shape)

    def items(self, scope, most=8, depth=2):
        return [self.expr(self.r.choice(SELECTED), scope, depth) for _ in range(self.r.randrange(1, most))]

    @staticmethod
    def named(items):
        return ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))

    def order_of(self, items, ids):
        """A total order of named items."""
        r = self.r
        keys = [f"c{n} {r.choice(['ASC', 'DESC'])}{r.choice(['', ' NULLS FIRST', ' NULLS LAST'])}" for n in range(len(items))]
        return ", ".join(keys + ids)

    # Queries.

    def plain(self):
        tail, scope, _ = self.from_where()
        return Statement("", f"SELECT {self.named(self.items(scope))}{tail}")

    def ordered(self):
        r = self.r
        tail, scope, ids = self.from_where()
        items = [self.expr(r.choice(["int4", "text", "numeric", "timestamp", "bool", "float8", "date", "interval"]), scope, 1) for _ in range(r.randrange(1, 3))]
        limit = r.choice(["", f" LIMIT {r.choice([0, 1, 3, 10])}", f" LIMIT {r.choice([2, 5])} OFFSET {r.choice([0, 1, 4])}", f" OFFSET {r.choice([1, 2])}", " FETCH FIRST 3 ROWS ONLY"])
        return Statement("", f"SELECT {self.named(items)}, {', '.join(ids)}{tail} ORDER BY {self.order_of(items, ids)}{limit}", is_ordered=True)

    def distinct(self):
        tail, scope, _ = self.from_where()
        return Statement("", f"SELECT DISTINCT {self.named(self.items(scope, 3))}{tail}")

    def distinct_on(self):
        r = self.r
        tail, scope, ids = self.from_where()
        key = self.column(r.choice(["int4", "text", "bool", "date", "int8"]), [pair for pair in scope if pair[1] != "id"])
        if not any(key == name for name, _ in scope):
            return self.plain()
        by = self.column(r.choice(["int4", "numeric", "text"]), scope)
        order = f"{key}, {by} {r.choice(['ASC', 'DESC'])} NULLS {r.choice(['FIRST', 'LAST'])}, {', '.join(ids)}"
        return Statement("", f"SELECT DISTINCT ON ({key}) {key} AS k, {self.named(self.items(scope, 3))}{tail} ORDER BY {order}")

    def total(self):
        tail, scope, _ = self.from_where()
        items = [self.aggregate(scope)[0] for _ in range(self.r.randrange(1, 7))]
        having = f" HAVING {self.having(scope)}" if self.r.random() < 0.2 else ""
        return Statement("", f"SELECT {self.named(items)}{tail}{having}")

    def grouped(self):
        r = self.r
        tail, scope, _ = self.from_where()
        keys = [self.expr(r.choice(["int4", "text", "bool", "date", "numeric", "timestamp", "float8", "int8"]), scope, r.choice([0, 1, 1])) for _ in range(r.randrange(1, 3))]
        items = [self.aggregate(scope)[0] for _ in range(r.randrange(1, 6))]
        having = f" HAVING {self.having(scope)}" if r.random() < 0.4 else ""
        return Statement("", f"SELECT {self.named(keys + items)}{tail} GROUP BY {', '.join(str(n + 1) for n in range(len(keys)))}{having}")

    def grouping_sets(self):
        r, alias = self.r, self.alias()
        scope = self.names(alias)
        keys = [f"{alias}.{name}" for name in r.sample(["i", "s", "f", "d", "m", "v", "h"], r.randrange(1, 4))]
        some = lambda: "(" + ", ".join(r.sample(keys, r.randrange(0, len(keys) + 1))) + ")"
        form = r.choice([f"ROLLUP ({', '.join(keys)})", f"CUBE ({', '.join(keys)})", f"GROUPING SETS ({some()}, {some()}, ({', '.join(keys)}))"])
        items = [f"GROUPING({', '.join(keys)})"] + [self.aggregate(scope)[0] for _ in range(r.randrange(1, 3))]
        having = f" HAVING {self.having(scope)}" if r.random() < 0.3 else ""
        where = f" WHERE {self.condition(scope, 1)}" if r.random() < 0.5 else ""
        return Statement("", f"SELECT {', '.join(keys)}, {self.named(items)} FROM {r.choice(self.tables)} {alias}{where} GROUP BY {form}{having}")

    def windows(self):
        r = self.r
        tail, scope, ids = self.from_where()
        items = [self.windowed(scope, ids[0]) if len(ids) == 1 else self.windowed(scope, ", ".join(ids)) for _ in range(r.randrange(1, 4))]
        return Statement("", f"SELECT {', '.join(ids)}, {self.named(items)}{tail}")

    def moving(self):
        """Statistics of frames that NaN, infinities and outliers enter and leave."""
        r, alias = self.r, self.alias()
        x, y = f"{alias}.{r.choice(['x', 'y'])}", f"{alias}.{r.choice(['x', 'y', 'i'])}"
        forms = ["sum({x})", "avg({x})", "min({x})", "max({x})", "count({x})", "stddev_samp({x})", "stddev_pop({x})", "var_samp({x})", "var_pop({x})", "corr({x}, {y})", "covar_samp({x}, {y})", "regr_slope({x}, {y})", "regr_intercept({x}, {y})", "regr_r2({x}, {y})", "regr_sxx({x}, {y})",
                 "sum({a}.m)", "avg({a}.i)", "stddev({a}.m)", "var_pop({a}.h)", "sum({a}.e)"]
        width = r.choice([0, 1, 2, 3])
        frame = r.choice([f"ROWS BETWEEN {width} PRECEDING AND CURRENT ROW", f"ROWS BETWEEN {width} PRECEDING AND {r.choice([0, 1, 2])} FOLLOWING", f"ROWS BETWEEN CURRENT ROW AND {width} FOLLOWING", f"RANGE BETWEEN {width} PRECEDING AND 1 FOLLOWING"])
        order = f"{alias}.i, {alias}.id" if not frame.startswith("RANGE") else f"{alias}.{r.choice(['i', 'b'])}"
        part = f"PARTITION BY {alias}.{r.choice(['f', 's', 'h'])} " if r.random() < 0.4 else ""
        items = [f"{form.format(x=x, y=y, a=alias)} OVER ({part}ORDER BY {order} {frame})" for form in r.sample(forms, 5)]
        return Statement("", f"SELECT {alias}.id, {self.named(items)} FROM {r.choice(self.tables)} {alias}")

    def windows_of_groups(self):
        r, alias = self.r, self.alias()
        key = f"{alias}.{r.choice(['i', 's', 'd', 'm'])}"
        window = r.choice([f"sum(count(*)) OVER (ORDER BY {key} NULLS FIRST)", f"rank() OVER (ORDER BY count(*) DESC)", f"sum(sum({alias}.i)) OVER ()", f"lag(max({alias}.i)) OVER (ORDER BY {key})", f"first_value(min({alias}.v)) OVER (ORDER BY count(*), {key})"])
        having = f" HAVING {self.having(self.names(alias))}" if r.random() < 0.3 else ""
        return Statement("", f"SELECT {key} AS k, {window} AS w FROM {r.choice(self.tables)} {alias} GROUP BY {key}{having}")

    def set_operations(self):
        r = self.r
        kinds = [r.choice(["int4", "text", "numeric", "timestamp", "bool", "float8", "int8", "date"]) for _ in range(r.randrange(1, 3))]

        def side():
            tail, scope, _ = self.from_where()
            return f"SELECT {self.named([self.expr(kind, scope, 1) for kind in kinds])}{tail}"
        word = lambda: r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
        text = r.choice([lambda: f"{side()} {word()} {side()}", lambda: f"({side()} {word()} {side()}) {word()} {side()}", lambda: f"{side()} {word()} {side()} {word()} {side()}", lambda: f"{side()} {word()} ({side()} {word()} {side()})"])()
        if r.random() < 0.3:
            keys = ", ".join(f"{n + 1} {r.choice(['ASC', 'DESC'])}" for n in range(len(kinds)))
            return Statement("", f"{text} ORDER BY {keys} LIMIT {r.choice([1, 3, 8])}", is_ordered=True)
        return Statement("", text)

    def values(self):
        text, scope = self.values_list(self.alias())
        where = f" WHERE {self.condition(scope, 2)}"
        return Statement("", f"SELECT {self.named(self.items(scope))} FROM {text}{where if self.r.random() < 0.5 else ''}")

    def recursive(self):
        r, table = self.r, self.r.choice(self.tables)
        union = r.choice(["UNION", "UNION ALL"])
        limit, condition = r.choice([3, 6]), self.condition(self.names("o"), 1)
        text = r.choice([
            f"WITH RECURSIVE r(n, p) AS (SELECT 1::bigint, 1::bigint {union} SELECT n + 1, p * 2 FROM r WHERE n < {limit}) SELECT r.n, r.p, count(o.id) AS c FROM r LEFT JOIN {table} o ON o.b = r.n GROUP BY r.n, r.p",
            f"WITH RECURSIVE r(id, j, depth) AS (SELECT o.id, o.j, 0 FROM {table} o WHERE {condition} {union} SELECT o.id, o.j, r.depth + 1 FROM r JOIN {table} o ON o.i = r.j WHERE r.depth < 3) SELECT id, depth, count(*) AS c FROM r GROUP BY id, depth",
            f"WITH RECURSIVE r(i) AS (SELECT o.i FROM {table} o WHERE {condition} UNION SELECT o.j FROM r JOIN {table} o ON o.i = r.i) SELECT i, (SELECT count(*) FROM {table} q WHERE q.i = r.i) AS c FROM r",
        ])
        return Statement("", text)

    def rows(self):
        one, other = self.alias(), self.alias()
        scope = self.names(one) + self.names(other)
        compared = [self.rows_compared(scope) for _ in range(3)]
        return Statement("", f"SELECT {self.named(compared[:2])} FROM {self.r.choice(self.tables)} {one} CROSS JOIN {self.tables[2]} {other} WHERE {compared[2]} OR {self.condition(scope, 1)}")

    def lateral(self):
        r, outer, inner = self.r, self.alias(), self.alias()
        scope = self.names(inner) + self.names(outer)
        item, kind = self.aggregate(self.names(inner))
        where = f"{inner}.{r.choice(['i', 'b'])} {r.choice(['=', '<', '>=', '<>'])} {outer}.{r.choice(['i', 'j', 'b'])} AND {self.compared(scope, 0)}"
        query = r.choice([f"SELECT {item} AS c FROM {r.choice(self.tables)} {inner} WHERE {where}", f"SELECT {inner}.s AS k, {item} AS c FROM {r.choice(self.tables)} {inner} WHERE {where} GROUP BY {inner}.s",
                          f"SELECT DISTINCT {inner}.s AS c FROM {r.choice(self.tables)} {inner} WHERE {where}"])
        word, on = r.choice([("CROSS JOIN", ""), ("LEFT JOIN", " ON true")])
        return Statement("", f"SELECT {outer}.id, q.* FROM {r.choice(self.tables)} {outer} {word} LATERAL ({query}) q{on}")

    def arrays(self):
        r, alias = self.r, self.alias()
        scope = self.names(alias)
        array = self.expr("floats", scope, 1)
        text = r.choice([
            f"SELECT {alias}.id, e.v FROM {r.choice(self.tables)} {alias} CROSS JOIN LATERAL unnest({alias}.l) AS e(v) WHERE {self.condition(scope, 1)}",
            f"SELECT {alias}.id, (SELECT sum(v) FROM unnest({alias}.l) AS e(v)) AS c FROM {r.choice(self.tables)} {alias}",
            f"SELECT {alias}.id, {array} AS a, ({array})[1] AS b, {self.expr('float8', scope, 1)} = ANY ({array}) AS c FROM {r.choice(self.tables)} {alias}",
            f"SELECT {alias}.id, g.n FROM {r.choice(self.tables)} {alias} CROSS JOIN LATERAL generate_series(0, {alias}.i) AS g(n)",
            f"SELECT {alias}.s, array_agg({alias}.id ORDER BY {alias}.id) AS c FROM {r.choice(self.tables)} {alias} GROUP BY {alias}.s",
        ])
        return Statement("", text)

    def common(self):
        """WITH: several queries, the second one over the first."""
        r, one, two = self.r, self.alias(), self.alias()
        names = self.names("o")
        first = f"SELECT * FROM {r.choice(self.tables)} o WHERE {self.condition(names, 1)}"
        tables, self.tables = self.tables, [one] * 3 + self.tables
        second = f"SELECT o.s, count(*) AS c, max(o.i) AS i FROM {r.choice(self.tables)} o WHERE {self.condition(names, 1)} GROUP BY o.s"
        tail, scope, ids = self.from_where()
        self.tables = tables
        return Statement("", f"WITH {one} AS ({first}), {two} AS ({second}) SELECT {self.named(self.items(scope, 3))}, (SELECT sum({two}.c) FROM {two}) AS t{tail}")

    # Changes.

    def changing(self, text, returning=True):
        r = self.r
        more = f" RETURNING {r.choice(['id', 'id, i, x', 'id, v, i + 1 AS k', 'id, coalesce(s, v) AS k, m'])}" if returning and r.random() < 0.5 else ""
        return Statement("", text + more, changes=CHANGED, source=r.choice(self.tables[1:]))

    def assigned(self, scope, target=""):
        """SET of one or two columns."""
        r = self.r
        names = r.sample([name for name in COLUMNS if name not in ("id", "ts", "l")], r.choice([1, 2]))
        return ", ".join(f"{name} = CAST({self.expr(KINDS[name], scope, 1)} AS {COLUMNS[name][2]})" for name in names)

    def own(self, alias=CHANGED):
        return self.names(alias)

    def insert(self):
        r, alias = self.r, self.alias()
        scope = self.names(alias)
        cells = [f"{alias}.id + 1000", f"{alias}.ts"] + [f"CAST({self.expr(kind, scope, 1)} AS {COLUMNS[name][2]})" if r.random() < 0.3 else f"{alias}.{name}" for name, kind in list(KINDS.items())[2:]]
        return self.changing(f"INSERT INTO {CHANGED} ({', '.join(COLUMNS)}) SELECT {', '.join(cells)} FROM {r.choice(self.tables)} {alias} WHERE {self.condition(scope, 2)}")

    def insert_values(self):
        r = self.r
        names = ["id", "ts"] + r.sample([name for name in COLUMNS if name not in ("id", "ts", "l")], 3)
        rows = ", ".join(f"({500 + n}, timestamp '{self.value('timestamp')}', " + ", ".join(f"CAST({self.constant(KINDS[name])} AS {NAMES[KINDS[name]]})" for name in names[2:]) + ")" for n in range(r.randrange(1, 4)))
        return self.changing(f"INSERT INTO {CHANGED} ({', '.join(names)}) VALUES {rows}")

    def update(self):
        return self.changing(f"UPDATE {CHANGED} SET {self.assigned(self.own())} WHERE {self.condition(self.own(), 2)}")

    def update_from(self):
        r, other = self.r, self.alias()
        scope = self.own() + self.names(other)
        return self.changing(f"UPDATE {CHANGED} SET {self.assigned(scope)} FROM {r.choice(self.tables)} {other} WHERE {other}.id = {CHANGED}.id AND {self.condition(scope, 1)}", returning=False)

    def delete(self):
        return self.changing(f"DELETE FROM {CHANGED} WHERE {self.condition(self.own(), 2)}")

    def delete_using(self):
        r, other = self.r, self.alias()
        scope = self.own() + self.names(other)
        return self.changing(f"DELETE FROM {CHANGED} USING {r.choice(self.tables)} {other} WHERE {self.column('int4', self.names(other))} = {self.column('int4', self.own())} AND {self.condition(scope, 1)}", returning=False)

    def merge(self):
        r, other = self.r, "u"
        scope = self.own() + self.names(other)
        on = f"{CHANGED}.id = u.id" + (f" AND {self.compared(scope, 0)}" if r.random() < 0.3 else "")
        when = lambda names: f" AND {self.condition(names, 1)}" if r.random() < 0.6 else ""
        matched = [f"WHEN MATCHED{when(scope)} THEN {r.choice([f'UPDATE SET {self.assigned(scope)}', 'DELETE', 'DO NOTHING'])}" for _ in range(r.choice([1, 2]))]
        cells = ", ".join(f"u.{name}" if name != "id" else "u.id + 2000" for name in COLUMNS)
        insert = f"INSERT ({', '.join(COLUMNS)}) VALUES ({cells})"
        missing = [f"WHEN NOT MATCHED{when(self.names(other))} THEN {r.choice([insert, insert, 'DO NOTHING'])}"]
        return self.changing(f"MERGE INTO {CHANGED} USING {r.choice(self.tables)} u ON {on} {' '.join(matched + missing)}", returning=False)

    def conflict(self):
        r, alias = self.r, self.alias()
        action = r.choice(["DO NOTHING", f"DO UPDATE SET v = {self.expr('text', [(f'{KEYED}.v', 'text'), ('excluded.v', 'text')], 1)}, i = coalesce({KEYED}.i, 0) + excluded.i" + (f" WHERE {self.condition([(f'{KEYED}.i', 'int4'), ('excluded.i', 'int4'), (f'{KEYED}.v', 'text')], 1)}" if r.random() < 0.5 else "")])
        text = f"INSERT INTO {KEYED} (id, ts, i, v) SELECT {alias}.id, timestamp '2024-03-31', {alias}.i, {alias}.v FROM {r.choice(self.tables)} {alias} WHERE {self.condition(self.names(alias), 1)} ON CONFLICT (id, ts) {action}"
        return Statement("", text + (" RETURNING id, i, v" if r.random() < 0.4 else ""), changes=KEYED, source=r.choice(self.tables[1:]))
