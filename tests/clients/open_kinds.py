"""Differences between Tidalite and PostgreSQL that the generators find and that are known.

`LISTED` names a line of docs/semantics.md; `OPEN` is a fault that is not mended. A kind of `OPEN` leaves the list with the
commit that mends it.
"""

import re


def statement_kind(statement, wrong):
    """The name of the known kind of a difference, or None."""
    return None
