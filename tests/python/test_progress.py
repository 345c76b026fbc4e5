"""What notebooks show while a query takes long; the notebook is made up."""

import sys
import threading
import types

import pytest
import tidalite._progress as progress


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
    assert progress.shown(lambda: wait.wait(0.2) or 7, "select 1") == 7
    assert shown[0] == "running …" and "interrupt to cancel" in shown[1] and shown[-1].startswith("took ")


def test_what_is_quick_says_nothing(shown, local, monkeypatch):
    monkeypatch.setattr(progress, "_FIRST", 60.0)
    assert local.sql("select 1").arrow().num_rows == 1
    assert shown == []


def test_errors_end_it_too(shown):
    def fail():
        threading.Event().wait(0.1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        progress.shown(fail, "select 1")
    assert shown[-1].startswith("took ")
