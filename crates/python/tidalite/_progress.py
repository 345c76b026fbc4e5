"""A sign of life in notebooks for what takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Callable

#: Seconds before anything is shown, and between two signs.
_FIRST, _EACH = 2.0, 0.5


def _is_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and "IPKernelApp" in getattr(instance, "config", {})


def shown(work: Callable[[], Any], sql: str) -> Any:
    """Does the work, here; in a notebook another thread says meanwhile how long it has taken."""
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
            handle.update({"text/plain": f"running for {time.monotonic() - started:.1f} s, interrupt to cancel"}, raw=True)
        handle.update({"text/plain": f"took {time.monotonic() - started:.1f} s"}, raw=True)

    teller = threading.Thread(target=tell, daemon=True, name="tidalite-progress")
    teller.start()
    try:
        return work()
    finally:
        done.set()
        teller.join(timeout=1)
