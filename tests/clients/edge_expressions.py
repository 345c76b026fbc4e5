"""Expressions for `edges.py`: every cast, operator, function and aggregate that PostgreSQL's catalog defines for the types.

A list has entries (expression, types of its columns `a`, `b`, `c`). PostgreSQL decides which types an operator or function
accepts; `Edges.compare` skips the rest.
"""

import itertools
import re

from edges import CONSTANTS, TYPES

ALL = [*TYPES, *CONSTANTS]
CAST_TARGETS = ["boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric(12,3)", "numeric(38,10)", "numeric(5,2)", "text", "varchar(3)", "timestamp", "date", "interval", "uuid", "bytea",
                "double precision[]"]
# Operators that are not PostgreSQL's by design, see docs/semantics.md: `^` is XOR. `#` is not an operator of the dialect.
OPERATORS_LEFT_OUT = {"^", "#"}
# Functions of the catalog that are no functions of users: implementations, casts by name, sessions, chance.
FUNCTIONS_LEFT_OUT = re.compile(
    r"(pg_|_|RI_|bt|hash|brin|gin|gist|spg|has_|lo_|to_reg|row_security|set_config|version|getdatabase|session_user|current_|now$|random|gen_random|setseed|clock_|statement_|transaction_|timeofday|lastval|getpgusername"
    r"|in_range|txid|ts_|xml|query_to|database_to|table_to|schema_to|cursor_to|tsquery|tsvector|websearch|phraseto|plainto|array_to_ts|unique_key|suppress_|plpgsql|loread|lowrite|binary_upgrade|inet_|convert"
    r"|(int|float)[248]\w*$|numeric\w*$|bool$|text$|date$|time$|name$|oid$|char$|money$|point$|bit$|uuid\w*$|interval$|timestamp\w*$|dexp|dlog|dround|dtrunc|textlen|similar_|like|notlike|is_normalized|normalize$"
    r"|\w+(larger|smaller|_hash|_hash_extended|range|_subdiff|_statefunc|_accum|multirange)$|regclass|to_ascii|byteacat|textcat|overlaps|json_object$|jsonb_object$|generate_|unnest|regexp_matches|regexp_split_to_table|string_to_table)")
ROWS_MAX = 3000
"""Combinations of values for one expression."""
SMALL_VALUES = "(0 <= {0} AND {0} <= 5000)"
# Arguments that ask for a large result, which takes PostgreSQL seconds: (function, place of the argument).
SIZES = {"repeat": 1, "lpad": 1, "rpad": 1, "factorial": 0}


def casts():
    """Casts between all pairs of types, explicit and back again."""
    for of in ALL:
        for target in CAST_TARGETS:
            yield f"CAST(a AS {target})", (of,)
            yield f"CAST(CAST(a AS {target}) AS text)", (of,)


def operators(postgres):
    names = [name for (name,) in postgres.must("SELECT DISTINCT oprname FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace ORDER BY 1") if name not in OPERATORS_LEFT_OUT]
    for name in names:
        yield from ((f"{name} a", (of,)) for of in ALL)
    words = ["IS DISTINCT FROM", "IS NOT DISTINCT FROM", "LIKE", "ILIKE", "NOT LIKE", "SIMILAR TO", "AND", "OR"]
    for name in names + words:
        yield from ((f"(a {name} b)", types) for types in itertools.product(ALL, repeat=2))


def forms():
    """Special forms, with NULL as a value and as a literal."""
    lists = ["(a IN (b, NULL))", "(a NOT IN (b, NULL))", "(a = ANY (ARRAY[b, a]))", "coalesce(a, b)", "nullif(a, b)", "greatest(a, b)", "least(a, b, NULL)", "(CASE WHEN a = b THEN a ELSE b END)", "(CASE a WHEN b THEN 1 WHEN NULL THEN 2 ELSE 3 END)",
             "(a BETWEEN b AND a)", "(a NOT BETWEEN SYMMETRIC b AND NULL)", "(a = b OR a IN (NULL))", "(NOT (a IN (b, NULL)))", "coalesce(a IN (b, NULL), false)", "(CASE WHEN a NOT IN (b, NULL) THEN 1 ELSE 0 END)",
             "((a, b) = (b, a))", "((a, b) < (b, a))", "((a, 1) IN ((b, 1), (a, 2)))", "((a IN (b, NULL)) IS UNKNOWN)", "((a > b) IS NOT TRUE)", "concat(a, b)", "concat_ws('-', a, b)", "(a || b)", "num_nulls(a, b)", "format('%s|%s', a, b)",
             "(ARRAY[a, b])[2]", "array_length(ARRAY[a, b], 1)", "(b = ALL (ARRAY[a]))"]
    for form in lists:
        yield from ((form, types) for types in itertools.product(ALL, repeat=2))
    one = ["(a IS NULL)", "(a IS NOT NULL)", "(a IN (NULL))", "(a NOT IN (NULL, a))", "(a = NULL)", "(a IS TRUE)", "(a IS NOT FALSE)", "(a IS UNKNOWN)", "(NOT a)", "pg_typeof(a)::text", "(CASE WHEN a IS NULL THEN 'n' ELSE a::text END)",
           "to_json(a)", "json_build_array(a)", "to_char(a, 'YYYY-MM-DD HH24:MI:SS.US')", "to_char(a, 'FM999999990.0099')", "to_char(a, 'S9.99EEEE')", "to_char(a, 'Day DDD IYYY-IW Q J')", "quote_literal(a)", "md5(a::text)", "length(a::text)"]
    for form in one:
        yield from ((form, (of,)) for of in ALL)
    for field in ("century", "day", "decade", "dow", "doy", "epoch", "hour", "isodow", "isoyear", "julian", "microseconds", "millennium", "milliseconds", "minute", "month", "quarter", "second", "week", "year"):
        yield from ((f"extract({field} FROM a)", (of,)) for of in ("timestamp", "date", "interval"))
    for unit in ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium"):
        yield from ((f"date_trunc('{unit}', a)", (of,)) for of in ("timestamp", "date", "interval"))


def functions(postgres, is_wide=True):
    """Functions of one to three arguments: of the types of the catalog, and of all types that PostgreSQL converts to them."""
    rows = postgres.must("SELECT DISTINCT p.proname, p.pronargs FROM pg_proc p LEFT JOIN pg_description d ON d.objoid = p.oid AND d.classoid = 'pg_proc'::regclass WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND NOT proretset "
                         "AND pronargs BETWEEN 1 AND 3 AND coalesce(d.description, '') NOT LIKE 'implementation of%' AND coalesce(d.description, '') NOT LIKE 'I/O%' AND coalesce(d.description, '') NOT LIKE 'internal%' ORDER BY 1, 2")
    for name, count in rows:
        if FUNCTIONS_LEFT_OUT.match(name):
            continue
        count = int(count)
        for types in itertools.product(ALL, repeat=count) if count < 3 else by_signature(postgres, name):
            yield guarded(name, types)
    for name in ("mod", "ceiling", "like", "ceil"):
        yield from ((f"{name}(a, b)" if name in ("mod", "like") else f"{name}(a)", types) for types in itertools.product(ALL, repeat=2 if name in ("mod", "like") else 1))


def guarded(name, types):
    """A call, with a limit for the argument that is the size of the result."""
    arguments = ["a", "b", "c"][: len(types)]
    place = SIZES.get(name)
    if place is None or place >= len(types) or not types[place].startswith(("int", "float", "numeric")):
        return f"{name}({', '.join(arguments)})", types
    limited = SMALL_VALUES.format(arguments[place])
    return f"(CASE WHEN {limited} THEN {name}({', '.join(arguments)}) END)", types


def by_signature(postgres, name):
    """The types of three arguments, as the catalog has them."""
    rows = postgres.must(f"SELECT DISTINCT array_to_string(ARRAY(SELECT t.typname FROM unnest(p.proargtypes) WITH ORDINALITY u(o, n) JOIN pg_type t ON t.oid = u.o ORDER BY n), ',') FROM pg_proc p WHERE proname = '{name}' AND pronargs = 3 ORDER BY 1")
    for (text,) in rows:
        types = [word.replace("anycompatiblearray", "_float8").replace("anyarray", "_float8").replace("anycompatible", "float8").replace("anyelement", "float8") for word in text.split(",")]
        if all(of in ALL for of in types):
            yield tuple(types)


AGGREGATES = ["count(a)", "count(DISTINCT a)", "sum(a)", "sum(DISTINCT a)", "avg(a)", "min(a)", "max(a)", "stddev(a)", "stddev_pop(a)", "variance(a)", "var_pop(a)", "bit_and(a)", "bit_or(a)", "bit_xor(a)", "bool_and(a)", "bool_or(a)", "every(a)",
              "array_agg(a ORDER BY a)", "array_agg(DISTINCT a ORDER BY a DESC)", "string_agg(a::text, ',' ORDER BY a::text COLLATE \"C\")", "mode() WITHIN GROUP (ORDER BY a)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY a)", "percentile_disc(0.25) WITHIN GROUP (ORDER BY a DESC)",
              "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "count(*) FILTER (WHERE a IS NULL)", "sum(a) FILTER (WHERE false)", "min(a) FILTER (WHERE a IS NOT NULL)", "json_agg(a ORDER BY a)",
              "percentile_disc(ARRAY[0, 0.5, 1]::double precision[]) WITHIN GROUP (ORDER BY a)", "percentile_cont(ARRAY[0.25, 1]::double precision[]) WITHIN GROUP (ORDER BY a)",
              "rank(1) WITHIN GROUP (ORDER BY a)", "dense_rank(1) WITHIN GROUP (ORDER BY a)", "cume_dist(1) WITHIN GROUP (ORDER BY a)", "percent_rank(1) WITHIN GROUP (ORDER BY a)"]
PAIR_AGGREGATES = ["corr(a, b)", "covar_pop(a, b)", "covar_samp(a, b)", "regr_avgx(a, b)", "regr_avgy(a, b)", "regr_count(a, b)", "regr_intercept(a, b)", "regr_r2(a, b)", "regr_slope(a, b)", "regr_sxx(a, b)", "regr_sxy(a, b)", "regr_syy(a, b)"]
FRAMES = ["ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
          "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"]
WINDOWED = ["count(a)", "sum(a)", "avg(a)", "min(a)", "max(a)", "stddev_samp(a)", "stddev_pop(a)", "var_samp(a)", "var_pop(a)", "bool_and(a)", "bool_or(a)", "bit_and(a)", "bit_or(a)", "bit_xor(a)", "first_value(a)", "last_value(a)", "nth_value(a, 2)", "count(*)"]
RANKS = ["row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "lag(a)", "lead(a, 2)", "lead(a, 0)", "lag(a, -1)"]


def aggregates():
    for form in AGGREGATES:
        yield from ((form, (of,)) for of in ALL)
    for form in PAIR_AGGREGATES:
        yield from ((form, types) for types in itertools.product(["float8", "float4", "int4", "numeric"], repeat=2))


def windows():
    """(expression, types) over the values of a type in the order of the table, in the order of the values, and shuffled."""
    orders = ["k", "k DESC", "k % 3, k", "k * 7 % 11, k"]
    for of in ALL:
        for form in WINDOWED:
            for frame, order in itertools.product(FRAMES, orders):
                yield f"{form} OVER (ORDER BY {order} {frame})", (of,)
        for form in RANKS:
            for order in ("a, k", "a DESC, k", "a NULLS FIRST, k DESC", "k % 2, a DESC NULLS LAST, k"):
                yield f"{form} OVER (ORDER BY {order})", (of,)
        for form in ("rank()", "dense_rank()", "cume_dist()", "percent_rank()", "count(*)"):
            yield f"{form} OVER (PARTITION BY k % 2 ORDER BY a)", (of,)


def batches(expressions, size):
    """[(expressions, types)]: lists of at most `size` expressions of the same types, in the order in which they fill."""
    by_types = {}
    for expression, types in expressions:
        batch = by_types.setdefault(types, [])
        batch.append(expression)
        if len(batch) == size:
            yield by_types.pop(types), types
    yield from ((batch, types) for types, batch in by_types.items())
