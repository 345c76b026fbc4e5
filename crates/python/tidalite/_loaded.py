"""Loads the native half, the first time anything of the package is imported.

Its allocator reads how long to keep freed memory when it is loaded: longer than the second that is its default, as a
query of millions of groups frees gigabytes that the next one asks for again. Set by the environment, that is what holds.
The environment is as it was afterwards.
"""

import os

_KEPT = "MIMALLOC_PURGE_DELAY"
_MILLISECONDS = "10000"

_own = _KEPT not in os.environ
if _own:
    os.environ[_KEPT] = _MILLISECONDS
try:
    from . import _native  # noqa: F401
finally:
    if _own:
        del os.environ[_KEPT]
