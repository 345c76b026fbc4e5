"""Writers: line protocol over HTTP and TCP at a fixed total rate, and the ledger of what the server has acknowledged.

An HTTP request is acknowledged by its 204. TCP has no acknowledgement: its rows count as acknowledged when the server, after the end of
the stream, closes the connection without an error. `visible` measures the time until a query returns a row that was sent over TCP.
"""

import asyncio
import json
import random
import time
from operator import add

from .clients import Gone, HttpClient, LineClient, Refused, http_request, until

TABLES = 8
HOSTS = 100
# One row of 20 is up to 30 s late, one batch of 100 up to an hour.
LATE_ROW_EVERY, LATE_ROW_NS_MAX = 20, 30 * 10**9
LATE_BATCH_EVERY, LATE_BATCH_NS_MAX = 100, 3600 * 10**9
VISIBLE_EVERY_S, VISIBLE_POLL_S = 1.0, 0.01

CREATE = ("CREATE TABLE load_{table} (ts TIMESTAMP, writer SYMBOL, host SYMBOL, seq LONG, v LONG, x DOUBLE) "
          "TIMESTAMP(ts) PARTITION BY HOUR")
CHECK = "SELECT writer, count(*), sum(seq), sum(v), min(seq), max(seq) FROM load_{table} GROUP BY writer"


def value_of(writer, seq):
    """Value of the column v of a row; the sum over it is a checksum."""
    return (seq * 7919 + writer * 104729) % 1_000_003


class Batch:
    """Lines of some rows of one writer, and the sums by which they are found again."""

    def __init__(self, lines, first, values):
        self.lines, self.rows = lines, len(values)
        self.sums = (self.rows, sum(range(first, first + self.rows)), sum(values))


class Rows:
    """The rows of one writer, batch by batch, and the sums over those that the server acknowledged."""

    def __init__(self, writer, batch_rows, period_s):
        self.writer, self.batch_rows = writer, batch_rows
        self.step_ns = int(period_s * 1e9) // batch_rows
        self.sent, self.batches = 0, 0
        self.chance = random.Random(writer)
        # Rows, sum of seq, sum of v.
        self.acknowledged = [0, 0, 0]

    def batch(self, now_ns):
        """The next rows, the newest at `now_ns`; some rows and some batches are late."""
        first, writer = self.sent, self.writer
        self.sent += self.batch_rows
        self.batches += 1
        if self.batches % LATE_BATCH_EVERY == writer % LATE_BATCH_EVERY:
            now_ns -= self.chance.randrange(LATE_BATCH_NS_MAX)
        start = now_ns - (self.batch_rows - 1) * self.step_ns
        late = self.chance.randrange(LATE_ROW_NS_MAX)
        head = f"load_{writer % TABLES},writer=w{writer},host=h"
        values = [value_of(writer, seq) for seq in range(first, self.sent)]
        lines = "".join([
            f"{head}{seq % HOSTS} seq={seq}i,v={value}i,x={seq % 1000}.5 {start + (seq - first) * self.step_ns - (0 if seq % LATE_ROW_EVERY else late)}\n"
            for seq, value in enumerate(values, first)])
        return Batch(lines.encode(), first, values)

    def acknowledge(self, sums):
        self.acknowledged = list(map(add, self.acknowledged, sums))


def differences(ledger, found):
    """Texts of differences between acknowledged rows, {writer: [rows, sum of seq, sum of v]}, and those of CHECK, with min and max of seq."""
    wrong = []
    for writer, expected in sorted(ledger.items()):
        rows, seqs, values, low, high = found.get(writer, (0, 0, 0, None, None))
        if [rows, seqs or 0, values or 0] != list(expected) or (rows and (low, high) != (0, rows - 1)):
            wrong.append(f"{writer}: acknowledged rows, sum(seq), sum(v) {list(expected)}, found {[rows, seqs, values]}, seq {low} to {high}")
    wrong.extend(f"{writer}: {found[writer][0]} rows of an unknown writer" for writer in sorted(found.keys() - ledger.keys()))
    return wrong


async def http_writer(plan, rows, record):
    client = await HttpClient.connect(plan.http_port)
    client.on_loss = lambda error: record.failed("writer HTTP", f"connection lost: {error}")

    async def send():
        batch = rows.batch(time.time_ns())
        request = http_request("POST", "/write", batch.lines)
        begun = time.perf_counter()
        status, body = await client.ask(request)
        record.took("write HTTP", time.perf_counter() - begun)
        if status != 204:
            raise Refused(f"HTTP {status}: {body[:300].decode(errors='replace')}")
        rows.acknowledge(batch.sums)
        record.counts["rows HTTP"] += batch.rows

    await paced(plan, rows.writer, send, record, "writer HTTP")
    client.close()


async def tcp_writer(plan, rows, record):
    client = await LineClient.connect(plan.ilp_port)
    client.on_loss = lambda error: record.failed("writer TCP", f"connection lost: {error}")

    sent = [0, 0, 0]

    async def send():
        batch = rows.batch(time.time_ns())
        await client.send(batch.lines)
        sent[:] = map(add, sent, batch.sums)
        record.counts["rows TCP"] += batch.rows

    await paced(plan, rows.writer, send, record, "writer TCP")
    await client.finish()
    rows.acknowledge(sent)


async def paced(plan, number, send, record, who):
    """Sends a batch each period until the end; writers begin at different moments of the period."""
    due = plan.start + plan.write_period_s * number / plan.writers
    while due < plan.end:
        await until(due)
        try:
            await send()
        except Refused as error:
            record.failed(who, error)
        due += plan.write_period_s
        now = time.monotonic()
        if due < now:
            record.counts["batches delayed by a period or more"] += 1
            due = now


async def visible(plan, record):
    """Each second: one row over TCP, then a query until it shows the row."""
    lines, http = await LineClient.connect(plan.ilp_port), await HttpClient.connect(plan.http_port)
    due, number = plan.start + 2, 0
    while due < plan.end:
        await until(due)
        number += 1
        begun = time.perf_counter()
        await lines.send(b"load_visible seq=%di %d\n" % (number, time.time_ns()))
        while True:
            body = await http.run("SELECT max(seq) FROM load_visible")
            if (json.loads(body)["dataset"][0][0] or 0) >= number:
                break
            if time.perf_counter() - begun > 30:
                record.failed("row over TCP", "not visible within 30 s")
                break
            await asyncio.sleep(VISIBLE_POLL_S)
        record.took("row TCP visible", time.perf_counter() - begun)
        due = max(due + VISIBLE_EVERY_S, time.monotonic())
    await lines.finish()
    http.close()


async def guarded(task, record, who):
    """Awaits `task` and records an error instead of raising it, so that one client ends and the others continue."""
    try:
        await task
    except (Gone, Refused, OSError, TimeoutError) as error:
        record.failed(who, error)


async def run(plan, record):
    snapshots = asyncio.create_task(record.snapshots())
    all_rows = [Rows(writer, plan.batch_rows, plan.write_period_s) for writer in range(plan.writers)]
    tasks = [guarded((tcp_writer if rows.writer % 2 else http_writer)(plan, rows, record), record, "writer TCP" if rows.writer % 2 else "writer HTTP") for rows in all_rows]
    await asyncio.gather(*tasks, guarded(visible(plan, record), record, "row over TCP"))
    snapshots.cancel()
    record.end(ledger={f"w{rows.writer}": rows.acknowledged for rows in all_rows})
