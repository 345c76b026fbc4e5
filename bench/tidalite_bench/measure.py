"""Turns, medians, and when two medians may be compared."""

import statistics


def turns(systems, runs):
    """A B C A B C …: what slows the machine for a while slows all of them."""
    for run in range(runs):
        for system in systems:
            yield run, system


def middle(values):
    return statistics.median(values)


def spread(values):
    """From the lowest to the highest, as a part of the median."""
    return (max(values) - min(values)) / middle(values) if len(values) > 1 and middle(values) else 0.0


def told(seconds):
    """For the report: the median in ms, and half the spread where there is more than one run."""
    return f"{middle(seconds) * 1e3:.2f}" + (f" ±{spread(seconds) * 50:.0f} %" if len(seconds) > 1 else "")


def ratio(ours, theirs):
    """How many times ours is theirs, or None: the spread of either is larger than what they differ by, or nobody knows it."""
    if len(ours) < 2 or len(theirs) < 2:
        return None
    a, b = middle(ours), middle(theirs)
    if abs(a - b) <= max(max(ours) - min(ours), max(theirs) - min(theirs)):
        return None
    return a / b if b else None


def beside(name, seconds, groups):
    """For the report: how many times as fast a system of ours is as the best other; groups is {system: seconds}."""
    if not name.startswith("tidalite"):
        return ""
    best = min((s for n, s in groups.items() if not n.startswith("tidalite")), key=middle, default=[])
    found = ratio(best, seconds)
    return f"{found:.2f}×" if found else "not told apart"


def close(a, b, relative=1e-9):
    """Whether two answers agree: rows in any order, floats nearly."""
    if isinstance(a, str) != isinstance(b, str):
        return False
    if isinstance(a, float) or isinstance(b, float):
        if a is None or b is None:
            return a is b
        return abs(float(a) - float(b)) <= relative * max(1.0, abs(float(a)), abs(float(b)))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return False
        if a and isinstance(a[0], (list, tuple)):
            # Floats that differ in the last digit must not change the order of rows.
            key = lambda row: [f"{v:.6g}" if isinstance(v, float) else str(v) for v in row]  # noqa: E731
            a, b = sorted(a, key=key), sorted(b, key=key)
        return all(close(x, y, relative) for x, y in zip(a, b))
    return a == b


class Disagreement(RuntimeError):
    pass


def agree(answers, relative=1e-9):
    """Raises when a system gives another answer than the first: then there is no time to report."""
    items = list(answers.items())
    for name, answer in items[1:]:
        if not close(items[0][1], answer, relative):
            raise Disagreement(f"{items[0][0]} answers {str(items[0][1])[:300]} and {name} {str(answer)[:300]}")
