"""Differences between Tidalite and PostgreSQL that the generators find. They are by design, with the reasons in docs/semantics.md, but
for those whose name begins with `open`.
"""

import re
from dataclasses import dataclass

# Statements: name: (pattern of the statement, pattern of the difference).
STATEMENT_KINDS = {
    "by design: sums of LONG are LONG": (r"\bsum\(", "^22003 value out of range: the sum does not fit LONG"),
    "by design: rows of a sub-query that no outer row needs are computed": (r"width_bucket.*FROM", "^22023 operand, lower bound, and upper bound cannot be NaN"),
    "open: a column beside a cast of it, in a statement with INTERVAL parameters": (r"interval", "^42702 .*ambiguous"),
}


def statement_kind(statement, wrong):
    """The name of the difference by design that a statement has, or None."""
    for name, (of_statement, of_difference) in STATEMENT_KINDS.items():
        if re.search(of_statement, statement.text) and re.search(of_difference, wrong):
            return name
    return None


@dataclass
class Kind:
    name: str
    outcomes: str
    """Words of `value`, `error`, `answer`."""
    expression: str
    """A pattern."""
    types: tuple = ()
    """The kind needs one of these types among the arguments."""
    found: str = ""
    """A pattern of the answer."""
    others: tuple = ()
    """The kind needs one of these types, too."""


def plain_text(text):
    """Spellings of Tidalite's texts as PostgreSQL spells them: times, DOUBLE, arrays, BOOLEAN."""
    text = re.sub(r"(\d{4}-\d\d-\d\d)T(\d\d)", r"\1 \2", str(text))
    text = re.sub(r"(?<=[0-9])\.0(?![0-9])", "", text)
    text = re.sub(r"e(?=[0-9])", "e+", re.sub("inf(?!inity)", "Infinity", text))
    return re.sub(r"\btrue\b", "t", re.sub(r"\bfalse\b", "f", text.replace("[", "{").replace("]", "}").replace(", ", ",")))


FLOATS, REAL, DECIMALS = ("float4", "float8"), ("float4",), ("numeric", "numeric38")
INFINITE = r"^(NaN|-?Infinity|-?inf|-?0(\.0)?|-?0e\S*)$"
TEXTS = r"string_agg|text|varchar|\|\||concat|format|quote_|json|md5|length"
CHOSEN = "coalesce|greatest|least|nullif|CASE"
BY_DESIGN = [
    Kind("texts of times and DOUBLE: their lengths, digests and order", "value", "length|md5|string_agg", ("timestamp", *FLOATS, "_float8")),
    Kind("texts of times and DOUBLE cut to three characters", "value", r"varchar\(3\)", (*FLOATS, "_float8", "timestamp")),
    Kind("texts of DOUBLE beside others", "value", r"concat|format|\|\|", FLOATS),
    Kind("a DOUBLE of many digits as text", "value", TEXTS, (), r"[0-9]{10,20}\.0|16777216\.0"),
    Kind("DOUBLE and times in JSON", "value", "json", (*FLOATS, "_float8", "timestamp")),
    Kind("BOOLEAN in concat", "value", "concat", ("bool",), "true|false"),
    Kind("a text with a backslash becomes BINARY as it is", "answer", "bytea", ("text",)),
    Kind("no NaN in DECIMAL", "error", "", (), r"NaN does not fit|invalid input for type DECIMAL.*NaN"),
    Kind("DECIMAL has 38 digits", "error", "", DECIMALS, r"^22003 .*does not fit DECIMAL|^22023 .*overflow"),
    Kind("DOUBLE to DECIMAL by the shortest text", "value", r"AS numeric", FLOATS),
    Kind("a REAL or a DECIMAL is a DOUBLE", "value", CHOSEN, REAL, "", DECIMALS),
    Kind("an integer or a REAL keeps its digits", "value", r"ANY \(ARRAY", REAL, "", ("int4", "int8", *DECIMALS)),
    Kind("sums of REAL are DOUBLE", "value", r"^sum\(", REAL),
    Kind("sums of LONG are LONG", "error", r"^sum\(", ("int8",), "the sum does not fit LONG"),
    Kind("means of integers are DOUBLE", "value", r"^avg\(a\)", ("int8",)),
    Kind("arrays of arrays of different lengths", "answer value", r"array_agg|ARRAY\[", ("_float8",)),
    Kind("overflow, division by zero and domains of DOUBLE", "answer", "", (), INFINITE),
    Kind("letters of to_char, to_number and to_timestamp that mean nothing", "value error answer", r"to_(char|number|timestamp|date)\(a, b\)"),
    Kind("negative parts of a second in to_char", "value", "to_char", ("interval",)),
    Kind("no infinite times", "error", "to_timestamp|CAST", (), "out of range|invalid input"),
    Kind("dates after 5874897", "answer", "[-+]", ("date",), r"^58[78]\d{4}-|BC$"),
    Kind("an INTERVAL has 292 years beside its months and days", "error", "[*/]", ("interval",), "interval out of range"),
    Kind("least common multiples and powers of other types", "answer value", r"(lcm|gcd|pow|power)\("),
    Kind("regular expressions of another syntax", "error", "regexp", ("text",), "did not compile"),
    Kind("round(DOUBLE) rounds halves away from zero", "value", "round", FLOATS),
    Kind("time zones in POSIX form with fractions", "error", r"^timezone\(", ("text",), "not recognized"),
    Kind("object numbers of catalogs", "answer value", "^(format_type|[a-z]+_description)"),
    Kind("right() of the least INT takes all from the text, as of other negative numbers", "value", r"^right\(", ("int4",), "^ ?$"),
    Kind("open: bytes beside text", "value error", r"\|\|", ("bytea",)),
]


def edge_kind(finding):
    """The name of the difference by design that a cell has, or None."""
    if finding.outcome == "value" and plain_text(finding.found) == plain_text(finding.expected):
        return "texts of times, DOUBLE, arrays and BOOLEAN by CAST, concat and JSON"
    for kind in BY_DESIGN:
        is_of_types = all(not types or set(types) & set(finding.types) for types in (kind.types, kind.others))
        if finding.outcome in kind.outcomes.split() and is_of_types and re.search(kind.expression, finding.expression) and re.search(kind.found, str(finding.found)):
            return kind.name
    return None
