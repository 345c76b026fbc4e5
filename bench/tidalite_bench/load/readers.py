"""Readers: idle connections, busy connections with small queries, dashboards.

Busy connections ask at a fixed total rate. A dashboard asks all of its panels at once, each on a connection of its own, and its latency
is from the moment the refresh was due until the last panel is complete. Times are those of this process.
"""

import asyncio
import random
import time
from datetime import datetime, timedelta, timezone

from .clients import HttpClient, LineClient, PgClient, Refused, http_request, pg_execute, pg_prepare, pg_query, until
from .writers import HOSTS, TABLES, guarded

PANELS = 6
OPENED_TOGETHER = 50
# The server closes an HTTP connection without a request for five minutes.
KEEP_ALIVE_S = 240


def lookup(table, writer):
    return f"SELECT seq, v FROM load_{table} WHERE writer = {writer} AND ts > dateadd('s', -10, now()) ORDER BY ts DESC LIMIT 1"


def busy_statement(chance, writers):
    """A small query over the newest minute of one table."""
    writer = chance.randrange(writers)
    table, recent = writer % TABLES, "ts > dateadd('s', -60, now())"
    return chance.choice([
        lookup(table, f"'w{writer}'"),
        f"SELECT host, count(*), avg(x), max(v) FROM load_{table} WHERE {recent} GROUP BY host ORDER BY host",
        f"SELECT ts, avg(x), count(*) FROM load_{table} WHERE {recent} AND writer = 'w{writer}' SAMPLE BY 5s",
        f"SELECT writer, seq FROM load_{table} WHERE {recent} LATEST ON ts PARTITION BY writer",
    ])


def panels(now, dashboard, writers):
    """The statements of one refresh; like those of Grafana, they have the times of the range in their text."""
    table, writer = dashboard % TABLES, dashboard % writers
    text = lambda seconds: (now - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # noqa: E731
    recent = lambda seconds: f"ts BETWEEN '{text(seconds)}' AND '{text(0)}'"  # noqa: E731
    return [
        f"SELECT ts, avg(x), max(x) FROM load_{table} WHERE {recent(300)} SAMPLE BY 5s",
        f"SELECT ts, count(*) FROM load_{table} WHERE {recent(60)} SAMPLE BY 1s",
        f"SELECT host, avg(x) AS mean FROM load_{table} WHERE {recent(60)} GROUP BY host ORDER BY mean DESC LIMIT 10",
        f"SELECT ts, sum(v) FROM load_{table} WHERE {recent(300)} AND host = 'h{dashboard % HOSTS}' SAMPLE BY 10s",
        f"SELECT writer, ts, x FROM load_{table} WHERE {recent(30)} LATEST ON ts PARTITION BY writer",
        f"SELECT ts, seq, v FROM load_{table} WHERE {recent(60)} AND writer = 'w{writer}' ORDER BY ts DESC LIMIT 100",
    ][:PANELS]


async def busy(plan, number, record):
    kind = "HTTP" if number % 2 else "PG"
    client = await (HttpClient if kind == "HTTP" else PgClient).connect(plan.http_port if kind == "HTTP" else plan.pg_port)
    chance, period = random.Random(number), plan.busy / plan.query_rate
    if kind == "PG":
        # A table cannot be a parameter: one table for each connection.
        await client.run_bytes(pg_prepare("lookup", lookup(number % TABLES, "$1")))
    due = plan.start + period * number / plan.busy
    while due < plan.end:
        await until(due)
        begun = time.perf_counter()
        try:
            if kind == "HTTP":
                await client.run(busy_statement(chance, plan.writers))
            elif chance.random() < 0.5:
                await client.run_bytes(pg_execute("lookup", f"w{chance.randrange(plan.writers)}"))
            else:
                await client.run_bytes(pg_query(busy_statement(chance, plan.writers)))
        except Refused as error:
            record.failed(f"query {kind}", error)
        record.took(f"query {kind}", time.perf_counter() - begun)
        due = max(due + period, time.monotonic())
    client.close()


async def dashboard(plan, number, record):
    kind, port = (HttpClient, plan.http_port) if number % 2 else (PgClient, plan.pg_port)
    clients = [await kind.connect(port) for _ in range(PANELS)]
    # Not before the connections are open.
    due = max(plan.start + plan.refresh_s * number / plan.dashboards, time.monotonic())

    async def panel(client, sql):
        begun = time.perf_counter()
        try:
            await client.run(sql)
        except Refused as error:
            record.failed("dashboard", error)
        record.took("panel", time.perf_counter() - begun)

    while due < plan.end:
        await until(due)
        statements = panels(datetime.now(timezone.utc), number, plan.writers)
        await asyncio.gather(*(panel(client, sql) for client, sql in zip(clients, statements)))
        record.took("dashboard", time.monotonic() - due)
        # A refresh that would begin during the one before is left out, as in a browser.
        skipped = max(0, int((time.monotonic() - due) // plan.refresh_s))
        record.counts["refreshes skipped"] += skipped
        due += plan.refresh_s * (1 + skipped)
    for client in clients:
        client.close()


async def open_idle(plan, number, record):
    """Opens an idle connection, as a connection pool does, and returns (kind, client)."""
    kind, cls, port = [("HTTP", HttpClient, plan.http_port), ("PG", PgClient, plan.pg_port), ("TCP", LineClient, plan.ilp_port)][number % 3]
    client = await cls.connect(port)
    client.on_loss = lambda error: record.failed(f"idle {kind}", f"connection lost: {error}")
    if kind == "HTTP":
        await client.ask(http_request("GET", "/ping"))
    record.counts["idle connections"] += 1
    return kind, client


async def keep_alive(plan, idle, record):
    """Sends a request on each idle HTTP connection before the server closes it, as connection pools do."""
    due = time.monotonic() + KEEP_ALIVE_S
    while due < plan.end:
        await until(due)
        for kind, client in idle:
            if kind == "HTTP":
                await guarded(client.ask(http_request("GET", "/ping")), record, "idle HTTP, kept alive")
        due += KEEP_ALIVE_S


async def use_idle(number, kind, client):
    """Checks that an idle connection still works, and closes it."""
    if kind == "HTTP":
        status, _ = await client.ask(http_request("GET", "/ping"))
        if status != 204:
            raise Refused(f"/ping answered {status}")
    elif kind == "PG":
        await client.run("SELECT 1")
    else:
        await client.send(b"load_idle number=%di\n" % number)
        await client.finish()
    client.close()


async def together(count, make, record, who):
    """Awaits `make(0)` to `make(count - 1)`, a few at a time, and returns the results of those that succeeded."""
    results = []

    async def one(number):
        results.append(await make(number))

    for first in range(0, count, OPENED_TOGETHER):
        await asyncio.gather(*(guarded(one(number), record, who) for number in range(first, min(first + OPENED_TOGETHER, count))))
    return results


async def run(plan, record):
    snapshots = asyncio.create_task(record.snapshots())
    idle = await together(plan.idle, lambda number: open_idle(plan, number, record), record, "idle, at its opening")
    await asyncio.gather(keep_alive(plan, idle, record),
                         *(guarded(busy(plan, number, record), record, "busy") for number in range(plan.busy)),
                         *(guarded(dashboard(plan, number, record), record, "dashboard") for number in range(plan.dashboards)))
    await until(plan.end)
    used = await together(len(idle), lambda number: use_idle(number, *idle[number]), record, "idle, at its use")
    record.counts["idle connections used at the end"] = len(used)
    snapshots.cancel()
    record.end(idle_tcp=sum(kind == "TCP" for kind, _ in idle))
