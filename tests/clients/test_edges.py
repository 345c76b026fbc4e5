"""Every cast, operator, function, special form, aggregate and window function over the edge values of every type, beside
PostgreSQL.

`EDGES=0 pytest -s --timeout=0 test_edges.py` walks all of them (hours); `EDGES=2000` a sample of this size of each kind. Without, a
small sample by a seed (`EDGES_SEED`). With `RANDOM_FINDINGS=file` all differences are written there.
"""

import os
import random
import time

import edge_expressions
import pytest
from edges import Edges
from open_kinds import edge_kind
from postgres import Postgres, programs
from referees import Link

# Other seeds still find kinds that `open_kinds.py` does not list: the day becomes the seed when a week of days passes.
SEED = int(os.environ.get("EDGES_SEED") or 20261128)
KINDS = {
    "casts": (lambda postgres: edge_expressions.casts(), 40),
    "operators": (edge_expressions.operators, 80),
    "forms": (lambda postgres: edge_expressions.forms(), 60),
    "functions": (edge_expressions.functions, 45),
    "aggregates": (lambda postgres: edge_expressions.aggregates(), 40),
    "windows": (lambda postgres: edge_expressions.windows(), 80),
}
"""Expressions and how many of them CI compares, those that PostgreSQL knows."""
TRIES = 40
"""For each of them: most pairs of types have no such operator or function."""
CI_SECONDS = 20
"""For each kind; on a busy machine fewer expressions are compared."""
BATCH = 30
"""Expressions in one statement."""


@pytest.fixture(scope="module")
def edges(server):
    if programs() is None:
        pytest.skip("there is no PostgreSQL server here (initdb and postgres, package postgresql-15)")
    postgres = Postgres().start()
    theirs = Link(postgres.port, postgres.USER, postgres.DATABASE)
    theirs.must("SET statement_timeout = '5s'")
    yield Edges(Link(server.pg_port), theirs)
    postgres.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_edge_values_beside_postgres(edges, kind):
    listed, few = KINDS[kind]
    is_ci = not os.environ.get("EDGES")
    count = few if is_ci else int(os.environ["EDGES"])
    expressions, known, cells, started = list(listed(edges.postgres)), 0, edges.counts.cells, time.monotonic()
    random.Random(SEED).shuffle(expressions)
    edges.findings.clear()
    for batch, types in edge_expressions.batches(expressions[: count * TRIES or None], BATCH):
        known += sum(edges.compare_groups(one, types) for one in batch) if kind == "aggregates" else edges.compare(batch, types, with_constants=kind == "casts", is_window=kind == "windows")
        if count and (known >= count or is_ci and time.monotonic() - started > CI_SECONDS):
            break
    new = [finding for finding in edges.findings if not edge_kind(finding)]
    print(f"{kind}: {known} expressions and {edges.counts.cells - cells} cells compared, {len(edges.findings)} differ, {len(edges.findings) - len(new)} of known kinds, seed {SEED}, {time.monotonic() - started:.0f} s")
    if path := os.environ.get("RANDOM_FINDINGS"):
        with open(path, "a") as file:
            file.writelines(f"{finding}\n" for finding in new)
    assert known > 0
    assert not new, f"{len(new)} differences, seed {SEED}:\n" + "\n".join(map(str, new[:20]))
