"""How far a query has come, in notebooks, when it takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Callable, Optional

#: Seconds before anything is shown, and between two signs.
_FIRST, _EACH = 2.0, 0.5


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and "IPKernelApp" in getattr(instance, "config", {})


def _share(rows: Optional[tuple[int, int]]) -> str:
    return f", {100 * rows[0] // rows[1]} % of {rows[1]:,} rows read" if rows and rows[1] else ""


def shown(work: Callable[[], Any], rows: Callable[[], Optional[tuple[int, int]]]) -> Any:
    """Does the work, here; in a notebook another thread says meanwhile how long it has taken, and how much is done.

    :param rows: how many rows were read and how many there are to read; None when that is not known
    """
    if not _is_notebook():
        return work()
    done = threading.Event()
    started = time.monotonic()

    def tell() -> None:
        from IPython.display import display

        if done.wait(_FIRST):
            return
        handle = display({"text/plain": "running …"}, raw=True, display_id=True)
        while not done.wait(_EACH):
            text = f"running for {time.monotonic() - started:.1f} s{_share(rows())}, interrupt to cancel"
            handle.update({"text/plain": text}, raw=True)
        handle.update({"text/plain": f"took {time.monotonic() - started:.1f} s"}, raw=True)

    teller = threading.Thread(target=tell, daemon=True, name="tidalite-progress")
    teller.start()
    try:
        return work()
    finally:
        done.set()
        teller.join(timeout=1)
