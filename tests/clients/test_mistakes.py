"""Common mistakes, one a block of mistakes.txt, and what they are answered with.

A block is the statement, in which `¦` stands before the position of the error, the message, and the hint after `HINT: `. Texts
are those of PostgreSQL where it has one for the case, and name what the statement names.
"""

from pathlib import Path

import pytest
from server import Server, SqlError

BLOCKS = (Path(__file__).parent / "mistakes.txt").read_text().strip().split("\n\n")
TABLES = [
    "CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, side VARCHAR, price DOUBLE, amount LONG, day DATE, ok BOOLEAN) TIMESTAMP(ts) PARTITION BY DAY",
    "CREATE TABLE quotes (ts TIMESTAMP, symbol SYMBOL, bid DOUBLE, ask DOUBLE) TIMESTAMP(ts) PARTITION BY DAY",
    "INSERT INTO trades VALUES ('2024-01-01', 'AAPL', 'buy', 1.5, 10, '2024-01-01', true)",
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("mistakes")).start()
    for sql in TABLES:
        running.exec(sql)
    yield running
    running.stop()


def read(block):
    """(statement, position, message, hint)."""
    lines = block.split("\n")
    hint = lines.pop().removeprefix("HINT: ") if lines[-1].startswith("HINT: ") else None
    statement, message = lines
    assert statement.count("¦") == 1, statement
    return statement.replace("¦", ""), statement.index("¦"), message, hint


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("\n")[0].replace("¦", "")[:60])
def test_a_mistake_is_explained(filled, block):
    statement, position, message, hint = read(block)
    with pytest.raises(SqlError) as failed:
        filled.exec(statement)
    answer = failed.value.answer
    assert 400 <= failed.value.status < 500, failed.value.status
    expected = f"{message}; hint: {hint}" if hint else message
    assert (answer["error"], answer["position"]) == (expected, position)


def test_there_are_a_hundred():
    assert len(BLOCKS) >= 100
