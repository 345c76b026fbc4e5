"""A DataFrame to line protocol and into a server: what `bench_pandas` of py-tsbs-benchmark measures, and when it is visible.

Three blocks: Serialized (the frame into a buffer in memory), Sent (until the client is done; over TCP nobody answers) and
Visible (from the first byte until a count over a new connection shows all rows), which the original leaves out. The official
questdb client sends to every system, and our own sender beside it: the same frame, the same version of the protocol. The frame
and the connections are made before the clock starts.
"""

import os
import pprint
import random
import time
from concurrent.futures import ThreadPoolExecutor

from . import engines, install, machine
from .measure import beside, middle, spread, turns

SYSTEMS = ["tidalite-server", "questdb"]
REGIONS = {"us-east-1": "abce", "us-west-1": "ab", "us-west-2": "abc", "eu-west-1": "abc", "eu-central-1": "ab", "ap-southeast-1": "ab",
           "ap-southeast-2": "ab", "ap-northeast-1": "ac", "sa-east-1": "abc"}
TAGS = ["hostname", "region", "datacenter", "rack", "os", "arch", "team", "service", "service_version", "service_environment"]
FIELDS = [f"usage_{name}" for name in "user system idle nice iowait irq softirq steal guest guest_nice".split()]


def arguments(parser):
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--clients", default="questdb,tidalite", help="whose sender")
    parser.add_argument("--row-count", type=int, default=10_000_000)
    parser.add_argument("--scale", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--write-ilp", metavar="PATH", help="writes the serialized rows; - for standard output")
    parser.add_argument("--shell", action="store_true", help="an interactive shell with the frame, then the end")
    parser.add_argument("--no-send", dest="send", action="store_false", help="only serializes")
    parser.add_argument("--protocol", default="tcp", choices=["tcp", "http"])
    parser.add_argument("--protocol-version", default="1", choices=["1", "2", "auto"], help="1: doubles as text, as the original has them; auto: what client and server agree on")
    parser.add_argument("--op", default="dataframe", choices=["dataframe", "iterrows", "itertuples"])
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--worker-chunk-row-count", type=int, default=10_000)
    parser.add_argument("--validation-query-timeout", type=float, default=120.0)
    parser.add_argument("--touch-gib", type=int, default=0, help="memory to have from the host before each clock of sending starts")
    parser.add_argument("--debug", action="store_true")


def frame_of(rows, scale, seed):
    """As the original makes it, but that the region is drawn from the seed, too."""
    import numpy as np
    import pandas as pd

    chance, walks = random.Random(seed), np.random.default_rng(seed)
    pick = lambda words: [words[chance.randrange(len(words))] for _ in range(rows)]  # noqa: E731
    regions = pick(list(REGIONS))
    text = "string[pyarrow]"
    columns = {
        "hostname": [f"host_{i % scale}" for i in range(rows)], "region": regions,
        "datacenter": [r + REGIONS[r][chance.randrange(len(REGIONS[r]))] for r in regions],
        "rack": pick([str(i) for i in range(100)]), "os": pick(["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"]),
        "arch": pick(["x64", "x86"]), "team": pick(["SF", "NYC", "LON", "CHI"]), "service": pick([str(i) for i in range(20)]),
        "service_version": pick(["0", "1"]), "service_environment": pick(["production", "staging", "test"]),
    }
    frame = {name: pd.Series(values, dtype=text) for name, values in columns.items()}
    for name in FIELDS:
        steps = walks.normal(size=rows + 1)
        # A clamped walk has no closed form: one pass, in plain floats.
        value, out = steps[0], np.empty(rows)
        for i, step in enumerate(steps[1:].tolist()):
            value = min(100.0, max(0.0, value + step))
            out[i] = value
        frame[name] = out
    frame["timestamp"] = np.datetime64("2016-01-01T00:00:00", "ns") + np.arange(rows) * np.timedelta64(10_000_000_000, "ns")
    return pd.DataFrame(frame)


def chunks(frame, options):
    if not options.workers:
        return [[frame]]
    size = options.worker_chunk_row_count
    pieces = [frame.iloc[at:at + size] for at in range(0, len(frame), size)]
    assert sum(map(len, pieces)) == len(frame)
    return [pieces[worker::options.workers] for worker in range(options.workers)]


def classes(client):
    """(Buffer, Sender, TimestampNanos) of a client; ours lies in a folder that `make python` writes."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if client == "questdb":
            import questdb
            import questdb.ingress

            return questdb.ingress.Buffer, questdb.Sender, questdb.TimestampNanos
        if client != "tidalite":
            raise RuntimeError("no such client: questdb, tidalite")
        install.python_package()
        from tidalite import sender

        return sender.Buffer, sender.Sender, sender.TimestampNanos


def new_buffer(client, version="1"):
    """Of the version both ends of today agree on, when none is given."""
    return classes(client)[0](protocol_version=2 if version == "auto" else int(version))


def fill(target, frame, op, client):
    """`target` is a buffer or a sender."""
    if op == "dataframe":
        target.dataframe(frame, table_name="cpu", symbols=TAGS, at="timestamp")
        return
    rows = (row for _, row in frame.iterrows()) if op == "iterrows" else (row._asdict() for row in frame.itertuples(index=False))
    for row in rows:
        target.row("cpu", symbols={t: row[t] for t in TAGS}, columns={f: row[f] for f in FIELDS}, at=classes(client)[2](row["timestamp"].value))


def serialize(parts, options, client, write=None):
    def one(pieces):
        buffer, size = new_buffer(client, options.protocol_version), 0
        for piece in pieces:
            fill(buffer, piece, options.op, client)
            size += len(buffer)
            if write:
                write(bytes(buffer))
            if options.workers:
                buffer.clear()
        return size

    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(lambda _: time.sleep(0), parts))
        start = time.monotonic()
        size = sum(pool.map(one, parts))
        return time.monotonic() - start, size


def send(system, parts, options, client):
    """(seconds until sent, the moment of the first byte)."""
    is_http = options.protocol == "http"
    port = system.system.http_port if is_http else system.system.ilp_port
    settings = ["auto_flush_rows=75000"]
    if is_http:
        settings.append("request_timeout=60000")
    # Over HTTP the server is asked which versions it speaks; over TCP it cannot be.
    if options.protocol_version != "auto":
        settings.append(f"protocol_version={options.protocol_version}")
    elif not is_http:
        settings.append("protocol_version=2")
    conf = f"{options.protocol}::addr={engines.systems.HOST}:{port};" + "".join(f"{s};" for s in settings)
    senders = [classes(client)[1].from_conf(conf) for _ in parts]
    for sender in senders:
        sender.establish()

    def one(job):
        sender, pieces = job
        for piece in pieces:
            fill(sender, piece, options.op, client)
        sender.flush()
        sender.close()

    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(lambda _: time.sleep(0), parts))
        start = time.monotonic()
        list(pool.map(one, zip(senders, parts)))
        return time.monotonic() - start, start


def block(title, rows, size, seconds):
    print(f"{title}:\n  {rows} rows in {seconds:.2f}s: {rows / seconds / 1e6:.2f} mil rows/sec.\n  ILP Buffer size: {size / 2**20:.2f} MiB: {size / seconds / 2**20:.2f} MiB/sec.")


def run(options, out):
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(63)
    params = {k: v for k, v in vars(options).items() if k not in ("workload", "scratch")} | {"seed": seed}
    print("Running with params:\n    " + pprint.pformat(params).replace("\n", "\n    "))
    frame = frame_of(options.row_count, options.scale, seed)
    if options.shell:
        import code

        code.interact(local={"df": frame})
        return []
    parts, rows, records = chunks(frame, options), options.row_count, []
    write = None
    if options.write_ilp:
        import sys

        file = sys.stdout.buffer if options.write_ilp == "-" else open(options.write_ilp, "wb")
        write = file.write
    clients = usable(options.clients.split(","), out)
    for number, client in turns(clients, options.runs):
        seconds, size = serialize(parts, options, client, write if number == 0 and client == clients[0] else None)
        record = dict(workload="frames", case="serialized", system=f"{client} client", run=number, seconds=seconds, rows=rows, bytes=size, version=client_version(client))
        records.append(record)
        out.record(record)
        block(f"Serialized by the {client} client", rows, size, seconds)
    if not options.send:
        print("Not sending. Leave out --no-send to send to the servers.")
        return records
    made = engines.made_for_lines(options.systems, options.scratch, out)
    for number, (system, client) in turns([(system, client) for system in made for client in clients], options.runs):
        try:
            # What the one before left to write is not this one's load.
            os.sync()
            system.open()
            system.warm()
            create(system)
            machine.touch_memory(options.touch_gib)
            sent, start = send(system, parts, options, client)
            while (seen := system.system.count("cpu")) != rows:
                if seen > rows or time.monotonic() - start > options.validation_query_timeout + sent:
                    raise TimeoutError(f"{system.name} shows {seen} of {rows} rows")
                time.sleep(0.01)
            visible = time.monotonic() - start
            system.system.wait_settled({"cpu": rows}, 300)
            for case, seconds in (("sent", sent), ("visible", visible)):
                record = dict(workload="frames", case=case, system=f"{system.name}, {client} client", run=number, seconds=seconds, rows=rows, bytes=size, version=system.version(),
                              durability=system.durability, workers=options.workers, protocol=f"{options.protocol}, version {options.protocol_version}", disk=system.disk() if case == "visible" else None)
                records.append(record)
                out.record(record)
            block(f"Sent to {system.name} by the {client} client", rows, size, sent)
            block(f"Visible in {system.name}", rows, size, visible)
        except (RuntimeError, OSError, TimeoutError) as error:
            out.skip(system.name, error)
        finally:
            system.close()
    return records


def usable(clients, out):
    found = []
    for client in clients:
        try:
            classes(client)
            found.append(client)
        except (RuntimeError, ImportError) as error:
            out.skip(f"{client} client", error)
    return found


def client_version(client):
    from importlib.metadata import version

    return f"{client} client {version(client)}"


def create(system):
    columns = ", ".join([*(f"{t} SYMBOL" for t in TAGS), *(f"{f} DOUBLE" for f in FIELDS), "timestamp TIMESTAMP"])
    system.query("drop table if exists cpu")
    system.query(f"create table cpu ({columns}) timestamp(timestamp) partition by day")


def table(records):
    groups = {}
    for record in records:
        groups.setdefault((record["case"], record["system"]), []).append(record)
    rows = []
    for (case, name), group in groups.items():
        seconds = [r["seconds"] for r in group]
        compared = beside(name, seconds, {n: [r["seconds"] for r in g] for (c, n), g in groups.items() if c == case})
        rows.append([case, name, len(group), f"{middle(seconds):.2f} s", f"{spread(seconds):.0%}", f"{group[0]['rows'] / middle(seconds) / 1e6:.2f} M rows/s",
                     f"{group[0]['bytes'] / middle(seconds) / 2**20:.0f} MiB/s", compared, group[0].get("durability", "")])
    return ["until", "system", "runs", "time", "spread", "rate", "text", "as fast as the best other", "durability"], rows


def charts(records):
    from .page import bars

    out = []
    for case in ("serialized", "sent", "visible"):
        values = {}
        for record in (r for r in records if r["case"] == case):
            values.setdefault(record["system"], []).append(record["rows"] / record["seconds"] / 1e6)
        if values:
            out.append(bars(f"DataFrame {case}, million rows a second", {n: middle(v) for n, v in values.items()}))
    return out
