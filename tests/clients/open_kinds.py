"""Differences between Tidalite and PostgreSQL that the generators find and that are known: by design (docs/semantics.md lists
most of them) or not fixed yet. The commit that fixes a fault removes its entry.
"""

import re
from dataclasses import dataclass

# Statements: name: (pattern of the statement, pattern of the difference).
STATEMENT_KINDS = {
    "unnest with a folded condition": ("unnest", "^42883 .*unnest"),
    "length of an empty array": ("array_length", "^row"),
    "ANY of an empty array": (r"= ANY \(", "^row|rows for"),
    "the whole match in a replacement": (r"regexp_replace\(.*<\\&>", "^row|rows for"),
}


def statement_kind(statement, wrong):
    """The name of the known kind of a difference, or None."""
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
TEXTS = r"string_agg|text|varchar|\|\||concat|format|quote_|json|md5|array_to_|length"
EDGE_KINDS = [
    Kind("texts of BINARY", "value error", TEXTS, ("bytea",)),
    Kind("lengths, digests and order of texts that are spelled otherwise", "value", "length|md5|string_agg", ("timestamp", *FLOATS, "_float8", "bool")),
    Kind("format and quote_literal of types without a text", "value", "format|quote_", (), "^(None|NULL|.*[|].*|)$"),
    Kind("JSON numbers and times", "value", "json", (*FLOATS, *DECIMALS, "_float8", "timestamp", "interval")),
    Kind("a text with a backslash becomes BINARY as it is", "answer", "bytea", ("text",)),
    Kind("no NaN in DECIMAL", "error", "", (), r"NaN does not fit|invalid input for type DECIMAL.*NaN"),
    Kind("DECIMAL has 38 digits", "error", "", DECIMALS, r"^22003 .*does not fit DECIMAL|^22023 .*overflow"),
    Kind("DOUBLE to DECIMAL by the shortest text", "value", r"AS numeric", FLOATS),
    Kind("REAL computes in four bytes", "value", "", REAL),
    Kind("BOOLEAN in concat", "value", "concat|format", ("bool",)),
    Kind("means of LONG are DOUBLE", "value", r"avg\(a\)", ("int8",)),
    Kind("hypothetical sets", "error", r"rank\(1\)|cume_dist\(1\)"),
    Kind("DISTINCT with ORDER BY of intervals", "error", "array_agg", ("interval",)),
    Kind("arrays of arrays of different lengths", "answer", "array_agg", ("_float8",)),
    Kind("DOUBLE of many digits as text", "value", TEXTS, (), r"[0-9]{10,20}\.0"),
    Kind("least and greatest INTERVAL of moving frames are those by days", "value", r"(min|max)\(a\) OVER", ("interval",)),
    Kind("REAL as text", "value", "real.*text", (*DECIMALS, "float8")),
    Kind("overflow, division by zero and domains of DOUBLE", "answer", "", (), INFINITE),
    Kind("INTERVAL times and divided by numbers", "value error", r"[*/]", ("interval",)),
    Kind("rows with NULL", "value error", r"^\(\(a, (b|1)\)"),
    Kind("length of an empty array", "value", "array_length", ("_float8",)),
    Kind("array_remove of NULL", "value", "array_remove"),
    Kind("patterns of to_char, to_number and to_timestamp that are no patterns", "value error answer", r"to_(char|number|timestamp|date)\(a, b\)"),
    Kind("signs of zero and parts of a second in to_char", "value", "to_char"),
    Kind("infinite times", "error", "to_timestamp|CAST", (), "out of range|invalid input"),
    Kind("names of fields and zones that are no constants", "error", "date_part|date_trunc|timezone"),
    Kind("rounding beyond the type", "error value", r"(round|trunc)\(a"),
    Kind("least common multiples and powers beyond the type", "error answer value", r"(lcm|gcd|pow|power)\("),
    Kind("regular expressions that do not compile", "error", "regexp", ("text",), "did not compile"),
    Kind("an empty match", "value", "regexp_substr", ("text",)),
    Kind("shifts by more than the width", "value", "<<|>>"),
    Kind("|x| by an operator", "error", "^@ a"),
    Kind("years beyond 294276", "answer", r"[-+]", ("date",)),
    Kind("to_hex of negative INT", "value", "to_hex"),
    Kind("numbers of catalogs", "value answer", "description|format_type"),
    Kind("array_to_json of lines", "error", "array_to_json"),
    Kind("round(DOUBLE) rounds halves away from zero", "value", "round", FLOATS),
]


def edge_kind(finding):
    """The name of the known kind of a cell, or None."""
    if finding.outcome == "value" and plain_text(finding.found) == plain_text(finding.expected):
        return "texts of times, DOUBLE, arrays and BOOLEAN by CAST, concat and JSON"
    for kind in EDGE_KINDS:
        is_of_types = all(not types or set(types) & set(finding.types) for types in (kind.types, kind.others))
        if finding.outcome in kind.outcomes.split() and is_of_types and re.search(kind.expression, finding.expression) and re.search(kind.found, str(finding.found)):
            return kind.name
    return None
