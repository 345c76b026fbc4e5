"""Differences between Tidalite and PostgreSQL that the generators find and that are known: by design (docs/semantics.md lists
most of them) or not mended yet. The commit that mends a fault removes its entry.
"""

import re
from dataclasses import dataclass

# Statements: name: (pattern of the statement, pattern of the difference).
STATEMENT_KINDS = {
    "DOUBLE compared with DECIMAL": ("", r"^22003 ERROR:  numeric field overflow: .* does not fit DECIMAL\("),
    "INSERT of a column beside a cast of it": ("^INSERT", "^42702"),
    "unnest with a folded condition": ("unnest", "^42883 .*unnest"),
    "IS UNKNOWN over IS DISTINCT FROM": (r"(?s)IS (NOT )?DISTINCT FROM.*IS (NOT )?UNKNOWN", "row"),
    "length of an empty array": ("array_length", "^row"),
    "negated difference of times": (r"\(- ", "^22023 .*unary operator '-' only supports"),
    "HAVING that is never true": ("HAVING", "^1 rows for 0"),
    "DISTINCT ON with a correlated sub-query": ("DISTINCT ON", "XX000|panicked"),
    "ANY of an empty array": (r"= ANY \(", "^row"),
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


FLOATS, REAL, DECIMALS = ("float4", "float8"), ("float4",), ("numeric", "numeric38")
INFINITE = r"^(NaN|-?Infinity|-?inf|-?0(\.0)?|-?0e\S*)$"
EDGE_KINDS = [
    Kind("texts of DOUBLE, times, bytes and arrays by CAST, concat and JSON", "value error", r"text|varchar|\|\||concat|format|quote_|json|md5|array_to_|length", (*FLOATS, "timestamp", "bytea", "_float8", *DECIMALS, "interval", "date")),
    Kind("a length of VARCHAR is ignored", "value", r"varchar\(3\)"),
    Kind("a text becomes BINARY as it is", "value answer", "bytea", ("text",)),
    Kind("no NaN in DECIMAL", "error", "", (), r"NaN does not fit|invalid input for type DECIMAL.*NaN"),
    Kind("DOUBLE beside DECIMAL", "error value", "", FLOATS, r"^22003 .*does not fit DECIMAL|^[tf]$|^None$"),
    Kind("DECIMAL has 38 digits", "error", "", DECIMALS, r"^22003 .*does not fit DECIMAL|^22023 .*overflow"),
    Kind("DOUBLE to DECIMAL by the shortest text", "value", r"AS numeric", FLOATS),
    Kind("REAL computes in four bytes", "value", "", REAL),
    Kind("overflow, division by zero and domains of DOUBLE", "answer", "", (), INFINITE),
    Kind("INTERVAL times and divided by numbers", "value error", r"[*/]", ("interval",)),
    Kind("round(DOUBLE) rounds halves away from zero", "value", "round", FLOATS),
]


def edge_kind(finding):
    """The name of the known kind of a cell, or None."""
    for kind in EDGE_KINDS:
        is_of_type = not kind.types or set(kind.types) & set(finding.types)
        if finding.outcome in kind.outcomes.split() and is_of_type and re.search(kind.expression, finding.expression) and re.search(kind.found, str(finding.found)):
            return kind.name
    return None
