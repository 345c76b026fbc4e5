"""What notebooks show while a query takes long; the notebook is made up."""

import re
import sys
import threading
import types

import pytest
import tidalite._progress as progress

SHARE = re.compile(r"(\d+) % of ([\d,]+) rows read")


@pytest.fixture
def shown(monkeypatch):
    """Everything that is displayed, in a process that looks like a notebook's and is in no hurry."""
    texts = []

    class Handle:
        def update(self, data, raw):
            texts.append(data["text/plain"])

    def display(data, raw, display_id):
        texts.append(data["text/plain"])
        return Handle()

    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    monkeypatch.setattr(progress, "_FIRST", 0.02)
    monkeypatch.setattr(progress, "_EACH", 0.02)
    return texts


def test_what_takes_long_says_so(shown, local):
    wait = threading.Event()
    far = iter([None, (0, 0), (1, 3), (1000, 3000)])
    assert progress.shown(lambda: wait.wait(0.2) or 7, lambda: next(far, None)) == 7
    assert shown[0] == "running …" and "interrupt to cancel" in shown[1] and shown[-1].startswith("took ")
    shares = [found[0] for text in shown if (found := SHARE.search(text))]
    assert shares == ["33 % of 3 rows read", "33 % of 3,000 rows read"], shown


def test_a_query_says_how_much_it_has_read(shown, db, table):
    rows = 1_000_000
    db.sql(f"create table {table} as (select x::timestamp ts, x v from long_sequence({rows})) timestamp(ts) partition by year")
    assert db.sql(f"select count(distinct md5(v::text)) n from {table}").arrow()["n"][0].as_py() == rows
    shares = [int(found[1]) for text in shown if (found := SHARE.search(text)) and found[2] == "1,000,000"]
    assert shares and shares == sorted(shares) and shares[-1] <= 100, shown


def test_what_is_quick_says_nothing(shown, local, monkeypatch):
    monkeypatch.setattr(progress, "_FIRST", 60.0)
    assert local.sql("select 1").arrow().num_rows == 1
    assert shown == []


def test_errors_end_it_too(shown):
    def fail():
        threading.Event().wait(0.1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        progress.shown(fail, lambda: None)
    assert shown[-1].startswith("took ")
