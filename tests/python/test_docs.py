"""The session in docs/python.md is true."""

import doctest
import os
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs/python.md"


def test_the_page(tmp_path, monkeypatch):
    import warnings

    warnings.filterwarnings("ignore", message="pandas only supports SQLAlchemy")
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(DOCS), module_relative=False, optionflags=flags, encoding="utf-8")
    assert tried > 10 and failed == 0
    assert os.listdir(tmp_path) == ["measurements"]
