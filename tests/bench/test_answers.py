"""When answers of different systems are the same, and what of them agrees where not all does."""

import sys
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from tidalite_bench.answers import agreement, majority, plain, same  # noqa: E402


def test_numbers_times_and_missing_texts_are_the_same_in_every_clothing():
    http = plain([[5, "2016-01-01T00:00:00.000000Z", "", True, "2013-07-01"]])
    python = plain([[5.0, datetime(2016, 1, 1), None, 1, "2013-07-01 00:00:00"]])
    assert same(http, python)
    assert same(plain([["12.50", "9007199254740993"]]), plain([[12.5, 9007199254740993]])), "numbers sent as text"
    assert not same(plain([[9007199254740993]]), plain([[9007199254740992]])), "beyond what a double holds"
    assert not same(plain([["host_1"]]), plain([["host_2"]]))


def test_of_many_rows_a_summary_is_compared():
    rows = [[i, f"host_{i % 7}", None] for i in range(10_000)]
    assert plain(rows) == [[10_000.0, 10_000.0, 49_995_000.0, 0.0, 0.0, 0.0, 7.0, 0.0, 0.0, 0.0]]
    assert not same(plain(rows), plain([*rows[:-1], [10_000, "host_3", None]]))


def test_rows_of_equal_rank_may_differ():
    a, b = plain([["x", 3], ["y", 1]]), plain([["x", 3], ["z", 1]])
    assert agreement(a, a) == "all"
    assert agreement(a, b) == "a column"
    assert agreement(plain([["x", 3]]), plain([["y", 4]])) == "count"
    assert agreement(a, plain([["x", 3]])) == "nothing"


def test_who_stands_alone_is_not_believed():
    one, other = plain([[1]]), plain([[2]])
    assert majority({"a": one, "b": other, "c": one}) == ["a", "c"]
    assert majority({"a": one, "b": other}) == [], "nobody knows which of two is right"
    assert majority({"a": one}) == ["a"]
