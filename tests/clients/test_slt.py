"""The files of tests/slt over the PostgreSQL protocol: what is true in process is true for its clients.

Every query runs by the simple and by the extended protocol, twice; statements take turns. Records that say what one world of
the Rust runner answers (`onlyif`: what EXPLAIN prints) are its own; `skipif pg` marks what the protocol itself answers
otherwise, such as an empty statement.
"""

import re
from pathlib import Path

import psycopg
import pytest
from psycopg.pq import ExecStatus
from slt import is_same, records, rows

FOLDER = Path(__file__).parent.parent / "slt"


CHANGES_ROWS = re.compile(r"^\s*(INSERT|UPDATE|DELETE|MERGE|WITH\b.*\b(INSERT|UPDATE|DELETE)\b)", re.I | re.S)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.slt")), ids=lambda path: path.stem)
def test_files_hold_over_the_protocol(path, servers):
    server = servers().start()
    failures = []
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
        ways = [connection.pgconn.exec_, lambda sql: connection.pgconn.exec_params(sql, None)]
        for turn, record in enumerate(r for r in records(path.read_text()) if r.only is None and r.skip != "pg"):
            # What changes rows and returns them runs once.
            is_change = CHANGES_ROWS.search(record.sql)
            # From the second run on a plan is kept, from the third its operators.
            chosen = ways * 2 if record.kind == "query" and not is_change else [ways[turn % 2]]
            for way in chosen:
                problem = differs(record, way(record.sql.encode()))
                if problem:
                    failures.append(f"{path.name}:{record.line}: {record.sql}\n{problem}")
                    break
    assert not failures, f"{len(failures)} records differ:\n\n" + "\n\n".join(failures[:20])
    assert server.stop() == 0


def differs(record, result):
    """What is wrong with an answer; None when nothing is."""
    message = (result.error_message or b"").decode()
    has_failed = result.status == ExecStatus.FATAL_ERROR
    if record.kind == "error":
        if not has_failed:
            return "no error"
        return None if re.search(record.expected, message) else f"another error: {message}"
    if has_failed:
        return message
    if record.kind == "count":
        return None if result.command_tuples == record.expected else f"{result.command_tuples} rows, not {record.expected}"
    if record.kind == "query":
        found = sorted(rows(result)) if record.is_sorted else rows(result)
        if len(found) != len(record.expected) or not all(map(is_same, found, record.expected)):
            return "\n".join(["found:", *found[:10], "expected:", *record.expected[:10]])
    return None
