"""Operators, functions and casts of numbers over all pairs of numeric types and their edge values, beside a model: Python's
integers and decimals, exact, and PostgreSQL's rules for types and rounding (checked against PostgreSQL 15)."""

import decimal
import json
import urllib.parse
from decimal import Decimal

import pytest

decimal.getcontext().prec = 120

INTEGERS = {"SHORT": 16, "INT": 32, "LONG": 64}
DECIMALS = {"DECIMAL(5,2)": (5, 2), "DECIMAL(18,3)": (18, 3), "DECIMAL(38,18)": (38, 18)}
VALUES = {
    "SHORT": [None, "0", "1", "-1", "7", "32767", "-32768"],
    "INT": [None, "0", "1", "-1", "46341", "2147483647", "-2147483648"],
    "LONG": [None, "0", "1", "-1", "3037000500", "9223372036854775807", "-9223372036854775808"],
    "DECIMAL(5,2)": [None, "0.00", "0.01", "-0.50", "1.15", "999.99", "-999.99"],
    "DECIMAL(18,3)": [None, "0.000", "0.005", "-2.500", "123456789012345.678", "999999999999999.999", "-0.001"],
    "DECIMAL(38,18)": [
        None, "0.000000000000000000", "0.070000000000000000", "12345.678900000000000000", "-2.500000000000000000",
        "99999999999999999999.999999999999999999", "-0.000000000000000001",
    ],
}
TYPES = list(VALUES)
COLUMNS = {name: f"c{at}" for at, name in enumerate(TYPES)}
ROWS = len(VALUES["INT"])


class Refused(Exception):
    """No value: an error of the class 22."""


def number(type_name, text):
    if text is None:
        return None
    return int(text) if type_name in INTEGERS else Decimal(text)


def wider(a, b):
    return a if INTEGERS[a] >= INTEGERS[b] else b


def fitting(value, type_name):
    bits = INTEGERS[type_name]
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise Refused
    return value


def half_up(value, scale):
    return value.quantize(Decimal(1).scaleb(-scale), rounding=decimal.ROUND_HALF_UP)


def digits_of(type_name):
    """Digits before and behind the point."""
    if type_name in DECIMALS:
        precision, scale = DECIMALS[type_name]
        return precision - scale, scale
    return {"SHORT": 5, "INT": 10, "LONG": 19}[type_name], 0


def shown(value, whole, scale):
    """A DECIMAL has 38 digits; one with more is shown with 18 behind the point, or all that fit."""
    if value is None:
        return None
    if whole + scale > 38:
        scale = min(scale, max(38 - whole, 18))
        value = half_up(value, scale)
        if abs(value) >= Decimal(10) ** (38 - scale):
            raise Refused
    return value


def calculated(op, type_a, a, type_b, b):
    if a is None or b is None:
        return None
    if op in "/%" and b == 0:
        raise Refused
    if type_a in INTEGERS and type_b in INTEGERS:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
        value = {"+": a + b, "-": a - b, "*": a * b, "/": quotient, "%": a - quotient * b}[op]
        return fitting(value, wider(type_a, type_b))
    (whole_a, scale_a), (whole_b, scale_b) = digits_of(type_a), digits_of(type_b)
    a, b = Decimal(a), Decimal(b)
    scale = max(scale_a, scale_b)
    if op == "*":
        return shown(a * b, whole_a + whole_b, scale_a + scale_b)
    if op == "/":
        scale = max(scale_a + 4, scale_b)
        return shown(half_up(a / b, scale), whole_a + scale_b, scale)
    if op == "%":
        return shown(a % b, max(min(whole_a, whole_b), 1), scale)
    return shown(a + b if op == "+" else a - b, max(whole_a, whole_b) + 1, scale)


def compared(op, a, b):
    if a is None or b is None:
        return None
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def execute(server, sql):
    body = urllib.parse.urlencode({"query": sql, "quoteLargeNum": "true"}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    status, _, answer = server.request("POST", "/exec", body, headers)
    answer = json.loads(answer, parse_float=Decimal)
    if "error" in answer:
        assert status == 400, answer
        return answer["error"]
    return answer.get("dataset", [])


@pytest.fixture(scope="module")
def numbers(server):
    columns = ", ".join(f"{column} {name}" for name, column in COLUMNS.items())
    execute(server, "DROP TABLE IF EXISTS matrix")
    assert not isinstance(execute(server, f"CREATE TABLE matrix (i INT, {columns})"), str)
    rows = []
    for at in range(ROWS):
        cells = [VALUES[name][at] or "NULL" for name in TYPES]
        rows.append(f"({at}, {', '.join(cells)})")
    answer = execute(server, f"INSERT INTO matrix VALUES {', '.join(rows)}")
    assert not isinstance(answer, str), answer
    yield server
    execute(server, "DROP TABLE matrix")


def parsed(value):
    if value is None or isinstance(value, bool):
        return value
    return Decimal(str(value))


def check(server, expression, expected):
    """`expected` of each pair of rows: a value, None, or Refused."""
    failed = [pair for pair, value in expected.items() if value is Refused]
    without = "".join(f" AND NOT (x.i = {a} AND y.i = {b})" for a, b in failed)
    sql = f"SELECT x.i, y.i, {expression} FROM matrix x CROSS JOIN matrix y WHERE true{without}"
    rows = execute(server, sql)
    assert not isinstance(rows, str), f"{sql}: {rows}"
    found = {(a, b): parsed(value) for a, b, value in rows}
    wanted = {pair: value for pair, value in expected.items() if value is not Refused}
    differ = {pair: (found.get(pair), value) for pair, value in wanted.items() if found.get(pair) != value}
    assert not differ, f"{expression}: {differ}"
    for a, b in failed[:2]:
        answer = execute(server, f"SELECT {expression} FROM matrix x CROSS JOIN matrix y WHERE x.i = {a} AND y.i = {b}")
        assert isinstance(answer, str), f"{expression} of rows {a} and {b}: {answer}"
        assert any(text in answer for text in ("out of range", "overflow", "division by zero")), answer


def expectations(of, type_a, type_b):
    expected = {}
    for at, a in enumerate(VALUES[type_a]):
        for bt, b in enumerate(VALUES[type_b]):
            try:
                expected[at, bt] = of(number(type_a, a), number(type_b, b))
            except Refused:
                expected[at, bt] = Refused
    return expected


@pytest.mark.parametrize("type_a", TYPES)
def test_operators_of_columns(numbers, type_a):
    for type_b in TYPES:
        for op in "+-*/%":
            expected = expectations(lambda a, b: calculated(op, type_a, a, type_b, b), type_a, type_b)
            check(numbers, f"x.{COLUMNS[type_a]} {op} y.{COLUMNS[type_b]}", expected)
        for op in ("=", "<>", "<", "<=", ">", ">="):
            expected = expectations(lambda a, b: compared(op, a, b), type_a, type_b)
            check(numbers, f"x.{COLUMNS[type_a]} {op} y.{COLUMNS[type_b]}", expected)


@pytest.mark.parametrize("type_a", TYPES)
def test_literals_beside_columns(numbers, type_a):
    """A literal next to a DECIMAL column is exact: in comparisons, IN, BETWEEN, CASE."""
    column = COLUMNS[type_a]
    literals = ["0.07", "1.15", "-2.5", "1.151", "12345.6789", "0.005", "123456789012345.678", "1e2", "-0.50",
                "99999999999999999999.999999999999999999", "-0.000000000000000001", "0.0000000000000000001"]
    if type_a in INTEGERS:
        literals = ["0.5", "-0.5", "7.0", "46341.5"]
    own = [number(type_a, text) for text in VALUES[type_a]]
    conditions = []
    for text in literals:
        value = Decimal(text)
        for op in ("=", "<>", "<", "<=", ">", ">="):
            conditions.append((f"{column} {op} {text}", [i for i, v in enumerate(own) if compared(op, v, value)]))
            swapped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
            conditions.append((f"{text} {swapped} {column}", [i for i, v in enumerate(own) if compared(op, v, value)]))
        there = [i for i, v in enumerate(own) if v is not None]
        conditions += [
            (f"{column} IN ({text}, 1)", [i for i in there if own[i] in (value, 1)]),
            (f"{column} NOT IN ({text})", [i for i in there if own[i] != value]),
            (f"{column} BETWEEN {text} AND 1000.5", [i for i in there if value <= own[i] <= Decimal("1000.5")]),
            (f"{column} NOT BETWEEN -1.5 AND {text}",
             [i for i in there if not Decimal("-1.5") <= own[i] <= value]),
            (f"CASE {column} WHEN {text} THEN true ELSE false END", [i for i in there if own[i] == value]),
            (f"{column} IS NOT DISTINCT FROM {text}", [i for i in there if own[i] == value]),
            (f"coalesce({column}, 0.07) = {text}",
             [i for i, v in enumerate(own) if (Decimal("0.07") if v is None else v) == value]),
        ]
    for condition, expected in conditions:
        rows = execute(numbers, f"SELECT i FROM matrix WHERE {condition} ORDER BY i")
        assert not isinstance(rows, str), f"{condition}: {rows}"
        assert [i for [i] in rows] == expected, condition


def rounded(name, value, places=0):
    mode = {"round": decimal.ROUND_HALF_UP, "floor": decimal.ROUND_FLOOR, "ceil": decimal.ROUND_CEILING,
            "trunc": decimal.ROUND_DOWN}[name]
    return value.quantize(Decimal(1).scaleb(-places), rounding=mode)


@pytest.mark.parametrize("type_a", DECIMALS)
def test_functions_of_decimals(numbers, type_a):
    column = COLUMNS[type_a]
    own = [number(type_a, text) for text in VALUES[type_a]]
    calls = [(f"{name}({column})", lambda v, name=name: rounded(name, v)) for name in ("round", "floor", "ceil", "trunc")]
    calls += [(f"{name}({column}, {n})", lambda v, name=name, n=n: rounded(name, v, n))
              for name in ("round", "trunc") for n in (-2, 1, 2)]
    calls += [(f"abs({column})", abs), (f"-{column}", lambda v: -v), (f"sign({column})", lambda v: (v > 0) - (v < 0))]
    for call, of in calls:
        rows = execute(numbers, f"SELECT {call} FROM matrix ORDER BY i")
        assert not isinstance(rows, str), f"{call}: {rows}"
        assert [parsed(v) for [v] in rows] == [None if v is None else of(v) for v in own], call


def cast(type_a, value, type_b):
    if value is None:
        return None
    if type_b in INTEGERS:
        return fitting(int(rounded("round", Decimal(value))), type_b)
    precision, scale = DECIMALS[type_b]
    out = half_up(Decimal(value), scale)
    if abs(out) >= Decimal(10) ** (precision - scale):
        raise Refused
    return out


@pytest.mark.parametrize("type_a", TYPES)
def test_casts(numbers, type_a):
    for type_b in TYPES:
        for text in VALUES[type_a]:
            at = VALUES[type_a].index(text)
            answer = execute(numbers, f"SELECT {COLUMNS[type_a]}::{type_b} FROM matrix WHERE i = {at}")
            tried = execute(numbers, f"SELECT try_cast({COLUMNS[type_a]} AS {type_b}) FROM matrix WHERE i = {at}")
            try:
                expected = cast(type_a, number(type_a, text), type_b)
                assert not isinstance(answer, str), f"{text}::{type_b}: {answer}"
                assert parsed(answer[0][0]) == expected, f"{text}::{type_b}"
                assert parsed(tried[0][0]) == expected, f"{text}::{type_b}"
            except Refused:
                assert isinstance(answer, str), f"{text}::{type_b}: {answer}"
                assert "out of range" in answer or "overflow" in answer, answer
                assert tried == [[None]], f"{text}::{type_b}"


def test_doubles_to_integers_and_decimals(server):
    for text, type_b, expected in [
        ("0.5", "INT", 0), ("1.5", "INT", 2), ("2.5", "INT", 2), ("-1.5", "INT", -2), ("2147483647.4", "INT", 2147483647),
        ("2147483647.5", "INT", None), ("'NaN'", "INT", None), ("'Infinity'", "LONG", None), ("1e19", "LONG", None),
        ("-9223372036854775808", "LONG", -(2**63)), ("1e300", "DECIMAL(38,18)", None), ("'NaN'", "DECIMAL(5,2)", None),
        ("1.005", "DECIMAL(5,2)", Decimal("1.01")), ("1.15", "DECIMAL(38,18)", Decimal("1.15")),
    ]:
        # PostgreSQL casts 1.005::float8 to numeric by 15 digits.
        for value in (f"{text}::double", f"(SELECT {text}::double AS v)"):
            answer = execute(server, f"SELECT CAST({value} AS {type_b})")
            if expected is None:
                assert isinstance(answer, str), f"{value} AS {type_b}: {answer}"
            else:
                assert not isinstance(answer, str) and parsed(answer[0][0]) == expected, f"{value} AS {type_b}: {answer}"
