"""The order in which rows arrive changes nothing but the order of equal timestamps: tables against an independent reading
of what was sent, column by column and row by row, while rows are staged, when they are settled, and after a restart.
"""

import http.client
import random
import threading

import lines
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from server import eventually
from test_content import differences, exported, load_http, load_tcp

HOSTS, STEPS = 100, 300  # a row of every host each 10 s
TEN_MINUTES = HOSTS * 60
WRITERS, REQUESTS, REQUEST_ROWS = 100, 12, 25


def ordered():
    return lines.cpu_lines(HOSTS, STEPS)


def at_one_time(rows):
    return [row.rsplit(b" ", 1)[0] + b" %d" % lines.START_NS for row in rows]


ORDERS = {
    "ordered": lambda rows: rows,
    "within_ten_minutes": lambda rows: lines.shuffled(rows, TEN_MINUTES),
    "random": lambda rows: lines.shuffled(rows, len(rows)),
    "reverse": lambda rows: rows[::-1],
    "one_timestamp": at_one_time,
}


def is_settled(server):
    return server.metrics()["tidalite_staged_rows"] == 0


def states(server):
    """The server with rows staged, settled, and started again."""
    yield "as it came"
    eventually(lambda: is_settled(server), 60, "the merge")
    yield "settled"
    assert server.stop() == 0
    server.start()
    yield "after a restart"
    server.kill()
    server.start()
    yield "after a kill"


def unlike(got, like):
    """Columns that are not the same row by row."""
    return [name for name in like.column_names if not got[name].combine_chunks().equals(like[name].combine_chunks())]


@pytest.mark.parametrize("how", ["http", "tcp"])
@pytest.mark.parametrize("order", ORDERS)
def test_one_writer_gives_the_same_table_in_any_order(servers, order, how):
    server, rows = servers().start(), ORDERS[order](ordered())
    read = lines.read_independently(rows)["cpu"]
    by_time = sorted(range(len(rows)), key=read["timestamp"].to_pylist().__getitem__)
    like = read.take(by_time)
    load_http(server, rows, "plain") if how == "http" else load_tcp(server, rows, 1)
    server.wait_count("cpu", len(rows))
    for state in states(server):
        assert unlike(exported(server, "cpu", like), like) == [], state


class Writer(threading.Thread):
    """Rows of its own in small requests, some late, many at the same time as those of others."""

    def __init__(self, port, number):
        super().__init__()
        self.port, self.lines, self.answers = port, [], []
        r = random.Random(number)
        for request in range(REQUESTS):
            part = []
            for k in range(REQUEST_ROWS):
                seq = request * REQUEST_ROWS + k
                ts = lines.START_NS + r.choice([seq * 10**9, r.randrange(3 * 86400) * 10**9, 0])
                part.append(f"w,writer=w{number} seq={seq}i,value={r.random()} {ts}".encode())
            self.lines.append(part)

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        for part in self.lines:
            connection.request("POST", "/write", lines.blob(part))
            answer = connection.getresponse()
            answer.read()
            self.answers.append(answer.status)


def test_a_hundred_interleaved_writers_lose_and_double_nothing(servers):
    server = servers().start()
    writers = [Writer(server.http_port, number) for number in range(WRITERS)]
    for w in writers:
        w.start()
    for w in writers:
        w.join()
        assert w.answers == [204] * REQUESTS
    like = lines.read_independently([line for w in writers for part in w.lines for line in part])["w"]
    for state in states(server):
        got = exported(server, "w", like)
        assert differences(got, like) == "", state
        stamps = got["timestamp"]
        assert pc.all(pc.greater_equal(stamps[1:], stamps[:-1])).as_py(), state
        # Of one writer, equal timestamps come in the order in which it sent them.
        last = {}
        for writer, ts, seq in zip(got["writer"].to_pylist(), stamps.to_pylist(), got["seq"].to_pylist()):
            before = last.get((writer, ts), -1)
            assert before < seq, (state, writer, ts)
            last[writer, ts] = seq
    assert isinstance(like, pa.Table)
