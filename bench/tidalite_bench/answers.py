"""Answers of different systems made comparable: a number is a number, a time is its text to the second, no text is NULL.

In: rows as a driver gives them. Out: `plain` rows, which `same` compares in any order. Of many rows it is a summary that is
compared: how many, the sum of every column of numbers, how many different texts in every other one.
"""

import re

from .measure import close

TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
ROWS_COMPARED_ONE_BY_ONE = 5_000
# From here on a double does not hold every integer.
EXACT = 1 << 53


def cell(value):
    if isinstance(value, bool):
        return 1.0 if value else 0.0
    if isinstance(value, int):
        return float(value) if abs(value) <= EXACT else str(value)
    if isinstance(value, float):
        return None if value != value else value
    if value is None or value == "":
        return None
    text = str(value)
    if TIME.match(text):
        text = text[:19].replace("T", " ")
        return text + " 00:00:00"[len(text) - 10:] if len(text) < 19 else text
    if NUMBER.fullmatch(text):
        # Some send integers of 64 bits and decimals as text.
        return cell(int(text)) if text.lstrip("-").isdigit() else float(text)
    return text


def plain(rows):
    rows = rows or []
    return summary(rows) if len(rows) > ROWS_COMPARED_ONE_BY_ONE else [[cell(value) for value in row] for row in rows]


def summary(rows):
    """One row: the count, then of each column how many numbers, their sum, how many different texts."""
    found = [float(len(rows))]
    for column in zip(*rows):
        if set(map(type, column)) <= {int, float, type(None)}:
            numbers, texts = [v for v in column if v is not None and v == v], 0
        else:
            cells = {value: cell(value) for value in set(column)}
            numbers = [cells[v] for v in column if isinstance(cells[v], float)]
            texts = len({v for v in cells.values() if isinstance(v, str)})
        found += [float(len(numbers)), float(sum(numbers)), float(texts)]
    return [found]


def same(a, b, relative=1e-9):
    return close(a, b, relative)


def agreement(a, b, relative=1e-9):
    """How far two answers to a query agree whose last rows may be any of equal rank: "all", "a column" (at least one holds
    the same values: what it is ordered by), "count", or "nothing"."""
    if same(a, b, relative):
        return "all"
    if len(a) != len(b):
        return "nothing"
    columns = list(zip(zip(*a), zip(*b)))
    if any(same([[v] for v in x], [[v] for v in y], relative) for x, y in columns):
        return "a column"
    return "count"


def majority(answers, agrees=same):
    """The names of the largest set of systems whose answers agree, the first such; a single one among several is none."""
    groups = []
    for name, answer in answers.items():
        for group in groups:
            if agrees(answers[group[0]], answer):
                group.append(name)
                break
        else:
            groups.append([name])
    largest = max(groups, key=len, default=[])
    return largest if len(largest) > 1 or len(answers) == 1 else []
