"""What tidalite-bench computes of its measurements: when it compares, what agrees, the score."""

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from tidalite_bench import hits  # noqa: E402
from tidalite_bench.measure import Disagreement, agree, beside, ratio, spread, turns  # noqa: E402


def test_systems_take_turns():
    assert list(turns(["a", "b"], 2)) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]


def test_no_ratio_is_given_where_the_spread_is_larger_than_the_difference():
    assert ratio([2.0, 2.1, 1.9], [1.0, 1.05, 0.95]) == 2.0
    assert ratio([2.0, 3.5, 1.9], [1.0, 1.05, 0.95]) is None
    assert ratio([2.0], [1.0]) is None, "one run has no spread to know"
    assert math.isclose(spread([1.0, 1.1, 0.9]), 0.2)


def test_ours_is_set_beside_the_best_of_the_others():
    groups = {"tidalite": [1.0, 1.0], "slow": [9.0, 9.0], "fast": [3.0, 3.0], "tidalite-server": [0.1, 0.1]}
    assert beside("tidalite", groups["tidalite"], groups) == "3.00×"
    assert beside("fast", groups["fast"], groups) == ""
    assert beside("tidalite", [1.0, 9.0], groups) == "not told apart"


def test_answers_agree_in_any_order_and_nearly():
    agree({"a": [[1, 2.0], [3, 4.0]], "b": [[3, 4.0 + 1e-12], [1, 2.0]]})
    with pytest.raises(Disagreement, match="a answers .* and b"):
        agree({"a": [[1, 2.0]], "b": [[1, 2.1]]})
    with pytest.raises(Disagreement):
        agree({"a": [[1]], "b": [[1], [1]]})


def test_the_score_is_the_official_one():
    # Twice: 10 ms + time over 10 ms + best; b fails at q1, which counts as 600 s.
    scores = hits.score({"a": {"q0": 0.01, "q1": 0.09}, "b": {"q0": 0.03, "q1": None}})
    assert math.isclose(scores["a"], 1.0)
    assert math.isclose(scores["b"], math.sqrt((0.04 / 0.02) * (600.01 / 0.1)))
    assert hits.score({"a": {"q0": None}, "b": {"q0": None}}) == {"a": None, "b": None}
    # Loads below 5 s count as equal, sizes below 1 GB as twice the least.
    assert math.isclose(hits.combined(1, 1e8, 2.0, 3.0, 1, 1e8), math.exp(.1 * math.log(2) + .2 * math.log(2) + .6 * math.log(3)))
