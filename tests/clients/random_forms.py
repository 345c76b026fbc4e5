"""Expressions, aggregates and windows for `random_statements.py`, by kind.

A form is (kinds of its parts, text). Kinds are PostgreSQL's types; both databases get the same text. Left out is what
docs/semantics.md lists: `^`, quotients of decimals with many digits, sums beyond LONG, and the kinds of `open_kinds.py`.
"""

NAMES = {"int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision", "numeric": "numeric(12,3)", "text": "text", "bool": "boolean", "timestamp": "timestamp", "date": "date",
         "interval": "interval", "uuid": "uuid", "floats": "double precision[]"}
NUMBERS = ["int2", "int4", "int8", "float4", "float8", "numeric"]
COMPARED = ["int4", "int8", "float8", "numeric", "text", "timestamp", "date", "int2", "float4", "uuid", "bool", "interval"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "America/St_Johns", "Pacific/Apia", "Europe/Dublin"]
UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century"]
FIELDS = ["year", "quarter", "month", "week", "day", "hour", "minute", "dow", "isodow", "doy", "isoyear", "decade", "century", "epoch"]
PATTERNS = ["a%", "%b", "%a%", "_b", "%", "", "ab", "a_%", "%é%", "a\\\\%", "_%_"]
REGEXES = ["^a", "b$", "a.*b", "[a-c]+", "^.b", "^$", "a|B", "\\\\d+", "(a)(b)?"]
FORMATS = ["YYYY-MM-DD", "HH24:MI:SS.US", "DD Mon YYYY", "FMDay, FMDDth", "Q IYYY-IW", "J", "HH12:MI AM"]
NUMBER_FORMATS = ["FM999990.00", "S9999", "000.0", "FM999,999", "9999MI"]


def same_kind(kind):
    """Forms that every kind has."""
    return [
        ([kind, kind], "coalesce({}, {})"), ([kind, kind, kind], "coalesce({}, {}, {})"), ([kind, kind], "nullif({}, {})"),
        (["bool", kind, kind], "(CASE WHEN {} THEN {} ELSE {} END)"), (["bool", kind], "(CASE WHEN {} THEN {} END)"), (["bool", kind, "bool", kind], "(CASE WHEN {} THEN {} WHEN {} THEN {} END)"),
        (["int4", kind, kind], "(CASE {} WHEN 1 THEN {} WHEN NULL THEN NULL ELSE {} END)"),
    ]


def extremes(kind):
    return [([kind, kind], "greatest({}, {})"), ([kind, kind], "least({}, {})")]


def arithmetic(kind):
    return [([kind, kind], "({} + {})"), ([kind, kind], "({} - {})"), ([kind], "(- {})"), ([kind], "abs({})")]


def integers(kind):
    return [*same_kind(kind), *extremes(kind), *arithmetic(kind), ([kind, kind], "({} * {})"), ([kind, kind], "({} / nullif({}, 0))"), ([kind, kind], "({} % nullif({}, 0))"), ([kind, kind], "({} & {})"), ([kind, kind], "({} | {})"),
            ([kind], "(~ {})"), ([kind, kind], "mod({}, nullif({}, 0))"), (["bool"], f"CAST(CAST({{}} AS integer) AS {NAMES[kind]})")]


FORMS = {
    "int2": [*integers("int2")],
    "int4": [*integers("int4"), (["text"], "length({})"), (["text", "text"], "strpos({}, {})"), (["text"], "octet_length({})"), (["int2"], "CAST({} AS integer)"), (["floats"], "array_length({}, 1)"), (["floats"], "cardinality({})"),
             (["int4", "int4"], "gcd({}, {})"), (["text"], "ascii({})"), (["date", "date"], "({} - {})"), (["float8"], "width_bucket({}, 0.0::double precision, 10.0::double precision, 5)"), (["bool"], "CAST({} AS integer)"),
             (["text"], "bit_length({})"), (["text"], "regexp_count({}, '{regex}')"), (["int4"], "({} << 2)"), (["int4"], "({} >> 1)"), (["floats", "float8"], "array_position({}, {})")],
    "int8": [*integers("int8"), (["int4"], "CAST({} AS bigint)"), (["numeric"], "CAST({} AS bigint)"), (["float8"], "CAST(least(greatest(coalesce(nullif({}, 'NaN'), 0), -1000), 1000) AS bigint)"), (["int8", "int4"], "({} + {})"),
             (["int8", "int8"], "lcm({}, {})"), (["timestamp"], "CAST(extract({field} FROM {}) AS bigint)"), (["date"], "CAST(extract(doy FROM {}) AS bigint)"), (["bool", "bool"], "num_nulls({}, {})")],
    "float8": [*same_kind("float8"), *extremes("float8"), *arithmetic("float8"), ([ "float8", "float8"], "({} * {})"), (["float8", "float8"], "({} / nullif({}, 0))"), (["int4"], "CAST({} AS double precision)"),
               (["numeric"], "CAST({} AS double precision)"), (["float4"], "CAST({} AS double precision)"), (["float8"], "floor({})"), (["float8"], "ceil({})"), (["float8"], "round({})"), (["float8"], "trunc({})"), (["float8"], "sign({})"),
               (["int8", "float8"], "({} + {})"), (["float8", "int2"], "({} * {})"), (["float8"], "sqrt(abs({}))"), (["int4"], "power({}::double precision, 2)"), (["floats"], "({})[1]"), (["floats"], "({})[2]"), (["float8"], "cbrt({})"),
               (["interval"], "CAST(extract(epoch FROM {}) AS double precision)")],
    "float4": [*same_kind("float4"), *extremes("float4"), ([ "float4"], "(- {})"), (["float4"], "abs({})"), (["int2"], "CAST({} AS real)")],
    "numeric": [*same_kind("numeric"), *extremes("numeric"), *arithmetic("numeric"), (["numeric", "numeric"], "({} * {})"), (["int4"], "CAST({} AS numeric(12,3))"), (["numeric"], "round({}, 1)"), (["numeric"], "trunc({}, 2)"), (["numeric"], "floor({})"),
                (["numeric"], "ceil({})"), (["numeric"], "round({})"), (["numeric"], "sign({})"), (["numeric", "int4"], "({} + {})"), (["int8", "numeric"], "({} * {})"), (["numeric"], "({} % 2)"), (["numeric"], "CAST({} AS numeric(10,1))"), (["numeric"], "({} + 0.125)"),
                (["numeric"], "(1.5 * {})"), (["numeric"], "mod({}, 0.7)"), (["numeric"], "div({}, 2)")],
    "text": [*same_kind("text"), *extremes("text"), (["text", "text"], "({} || {})"), (["text"], "upper({})"), (["text"], "lower({})"), (["text"], "substring({} FROM 1 FOR 2)"), (["text"], "substring({} FROM 2)"), (["text"], "left({}, 2)"),
             (["text"], "right({}, -1)"), (["text"], "reverse({})"), (["text"], "trim({})"), (["text"], "ltrim({}, 'a')"), (["text"], "btrim({}, ' b')"), (["text"], "lpad({}, 4, '*')"), (["text"], "rpad({}, 3, 'xy')"), (["text"], "repeat({}, 2)"),
             (["text"], "split_part({}, 'a', 1)"), (["text"], "split_part({}, 'b', -1)"), (["text", "text", "text"], "replace({}, {}, {})"), (["text"], "translate({}, 'ab', 'x')"), (["text"], "initcap({})"), (["text"], "md5({})"),
             (["text", "text"], "concat({}, {})"), (["text", "int4"], "concat_ws('-', {}, {})"), (["int4"], "CAST({} AS text)"), (["int8"], "CAST({} AS varchar)"), (["bool"], "CAST({} AS text)"), (["numeric"], "CAST(CAST({} AS numeric(12,3)) AS text)"), (["uuid"], "CAST({} AS text)"),
             (["date"], "CAST({} AS text)"), (["text", "int4"], "format('%s/%s', {}, {})"), (["text"], "quote_literal({})"), (["text"], "quote_ident({})"), (["text"], "overlay({} PLACING 'zz' FROM 2 FOR 1)"),
             (["text"], "regexp_replace({}, '{regex}', '<\\&>')"), (["text"], "regexp_substr({}, '{regex}')"), (["timestamp"], "to_char({}, '{format}')"), (["numeric"], "to_char({}, '{number_format}')"), (["int4"], "to_char({}, '{number_format}')"),
             (["text"], "array_to_string(string_to_array({}, 'a'), '-')"), (["interval"], "CAST({} AS text)"), (["text"], "position('b' IN {})::text")],
    "bool": [
        (["bool", "bool"], "({} AND {})"), (["bool", "bool"], "({} OR {})"), (["bool"], "(NOT {})"), (["bool", "bool"], "({} = {})"), (["bool", "bool"], "({} <> {})"), (["bool"], "({} IS TRUE)"), (["bool"], "({} IS NOT TRUE)"), (["bool"], "({} IS NOT FALSE)"),
        (["bool"], "({} IS UNKNOWN)"), (["bool"], "({} IS NOT UNKNOWN)"), (["bool"], "({} IS NULL)"), (["bool", "bool"], "coalesce({}, {})"), (["bool"], "coalesce({}, true)"), (["bool", "bool", "bool"], "(CASE WHEN {} THEN {} ELSE {} END)"),
        (["bool", "bool"], "(CASE WHEN {} THEN {} END)"), (["text"], "({} LIKE '{pattern}')"), (["text"], "({} NOT LIKE '{pattern}')"), (["text"], "({} ILIKE '{pattern}')"), (["text"], "({} ~ '{regex}')"), (["text"], "({} !~ '{regex}')"), (["text"], "({} ~* '{regex}')"),
        (["text"], "({} SIMILAR TO '(a|b)%')"), (["text"], "({} LIKE 'a!_%' ESCAPE '!')"), (["text", "text"], "starts_with({}, {})"), (["text", "text"], "({} LIKE {} || '%')"), (["floats", "float8"], "({1} = ANY ({0}))"), (["floats", "float8"], "({1} > ALL ({0}))"),
        (["floats", "floats"], "({} = {})"), (["timestamp", "interval"], "({0} + {1} > {0})"),
    ],
    "timestamp": [*same_kind("timestamp"), *extremes("timestamp"), (["timestamp"], "date_trunc('{unit}', {})"), (["timestamp", "interval"], "({} + {})"), (["timestamp", "interval"], "({} - {})"), (["date"], "CAST({} AS timestamp)"), (["date", "interval"], "({} + {})"),
                  (["timestamp"], "({} AT TIME ZONE '{zone}' AT TIME ZONE 'UTC')"), (["timestamp"], "({} AT TIME ZONE 'UTC' AT TIME ZONE '{zone}')"), (["timestamp"], "date_bin('15 minutes', {}, timestamp '2001-01-01')"), (["timestamp"], "({} + interval '1 month')")],
    "date": [*same_kind("date"), *extremes("date"), (["timestamp"], "CAST({} AS date)"), (["date", "int4"], "({} + {})"), (["date"], "({} - 3)"), (["date"], "CAST(date_trunc('{unit}', {}) AS date)")],
    "interval": [*same_kind("interval"), (["timestamp", "timestamp"], "({} - {})"), (["interval", "interval"], "({} + {})"), (["interval"], "({} * 2)"), (["interval"], "(- {})"), (["interval"], "justify_hours({})"), (["timestamp", "timestamp"], "age({}, {})"), (["int4"], "({} * interval '1 hour')"),
                 (["int4"], "make_interval(days => {})")],
    "uuid": [*same_kind("uuid")],
    "floats": [*same_kind("floats"), (["float8", "float8"], "ARRAY[coalesce({}, 0), coalesce({}, 1)]"), (["floats", "float8"], "array_append({}, coalesce({}, 2))"), (["floats"], "({})[1:2]"), (["floats", "floats"], "array_cat({}, {})"), (["floats", "floats"], "({} || {})"),
               (["floats", "float8"], "array_remove({}, coalesce({}, 1))")],
}

# Aggregates: kind of the result, kinds of the arguments, text.
AGGREGATES = [
    ("int8", [], "count(*)"), ("int8", ["any"], "count({})"), ("int8", ["any"], "count(DISTINCT {})"), ("int8", ["int4"], "sum({})"), ("int8", ["int2"], "sum({})"), ("int8", ["int8"], "sum({})"), ("int8", ["int4"], "sum(DISTINCT {})"), ("numeric", ["numeric"], "sum({})"),
    ("float8", ["float8"], "sum({})"), ("float8", ["float8"], "avg({})"), ("numeric", ["numeric"], "avg({})"), ("numeric", ["int4"], "avg({})"), ("int4", ["int4"], "min({})"), ("int4", ["int4"], "max({})"), ("text", ["text"], "min({})"), ("text", ["text"], "max({})"),
    ("float8", ["float8"], "min({})"), ("float8", ["float8"], "max({})"), ("timestamp", ["timestamp"], "min({})"), ("timestamp", ["timestamp"], "max({})"), ("date", ["date"], "max({})"), ("numeric", ["numeric"], "min({})"), ("float4", ["float4"], "max({})"), ("int8", ["int8"], "max({})"),
    ("bool", ["bool"], "bool_and({})"), ("bool", ["bool"], "bool_or({})"), ("int4", ["int4"], "bit_and({})"), ("int4", ["int4"], "bit_or({})"), ("int8", ["int8"], "bit_xor({})"), ("interval", ["interval"], "sum({})"), ("interval", ["interval"], "max({})"),
    ("text", ["text"], "string_agg({0}, ',' ORDER BY {0})"), ("text", ["text"], "string_agg(DISTINCT {0}, ',' ORDER BY {0})"), ("text", ["text", "int4"], "string_agg({0}, '/' ORDER BY {1} DESC, {0})"),
    ("float8", ["float8"], "stddev_samp({})"), ("float8", ["float8"], "var_pop({})"), ("float8", ["float8", "float8"], "corr({}, {})"), ("float8", ["float8", "float8"], "regr_slope({}, {})"), ("float8", ["float8", "float8"], "covar_pop({}, {})"), ("int8", ["float8", "float8"], "regr_count({}, {})"),
    ("float8", ["float8"], "percentile_cont(0.5) WITHIN GROUP (ORDER BY {})"), ("int4", ["int4"], "percentile_disc(0.5) WITHIN GROUP (ORDER BY {})"), ("text", ["text"], "percentile_disc(0.25) WITHIN GROUP (ORDER BY {} DESC)"), ("int4", ["int4"], "mode() WITHIN GROUP (ORDER BY {})"),
    ("text", ["text"], "mode() WITHIN GROUP (ORDER BY {})"), ("timestamp", ["timestamp"], "percentile_disc(0.9) WITHIN GROUP (ORDER BY {})"), ("numeric", ["numeric"], "percentile_disc(0.5) WITHIN GROUP (ORDER BY {})"),
    ("int4", ["int4"], "array_length(array_agg({}), 1)"), ("float8", ["float8"], "(array_agg(coalesce({0}, 0) ORDER BY {0}))[1]"), ("int8", ["numeric"], "count(DISTINCT {})"),
]
DISTINCT_OR_ORDERED = ("DISTINCT", "ORDER BY", "WITHIN GROUP", "array_")

FRAMES = ["", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
          "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING", "ROWS 2 PRECEDING", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "RANGE UNBOUNDED PRECEDING",
          "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]
WINDOW_FUNCTIONS = [
    ([], "row_number()"), ([], "rank()"), ([], "dense_rank()"), ([], "percent_rank()"), ([], "cume_dist()"), ([], "ntile(3)"), (["any"], "lag({})"), (["any"], "lead({}, 2)"), (["int4"], "lag({}, 1, 7)"), (["text"], "lead({}, 1, 'z')"), (["numeric"], "lag({}, 3, 1)"), (["any"], "first_value({})"),
    (["any"], "last_value({})"), (["any"], "nth_value({}, 2)"),
]
