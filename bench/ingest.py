#!/usr/bin/env python3
"""Measures ingest of line protocol, one system beside the other, and writes a table to bench/results/.

usage: ingest.py [--runs 3] [--systems questdb,tidalite] [--name ingest] CASE...
  raw:FILE:CONNECTIONS            pushes the bytes of $PEERS/ingest/FILE over plain sockets
  tsbs:FILE:WORKERS               tsbs_load_questdb of the TSBS suite, unchanged ($TSBS_BIN: the binary or its folder)
  df:{http|tcp}:{ord|o3}:{1|2}    dataframe() of the official Python client, 1 or 2 processes
  ack[:FILE:CONNECTIONS]          HTTP acknowledgement of 1,000 rows, alone, then while FILE is pushed (default cpu.ilp:1; --load-seconds); beside
                                  it that of a server which only writes and syncs, while FILE is pushed into the system
environment: PEERS, TSBS_BIN, TIDALITE_BIN, QDB_JAR, JAVA, QDB_HEAP; with --sync-delay-ms 5 Tidalite and
the server that only syncs add that to every sync. CASE@N of all but ack: the server runs on the
first N processors, the client on any.

Every run has a fresh data folder and a fresh server that was warmed up with other tables first. Each run of a case
measures all systems, in turns, before the next; with --in-turns each run measures all cases, too. Clocks start with the first byte:
sent = the client is done, visible = count(*) shows all rows, settled = the system has no work left (see the table's notes).
`count(*)` is polled only after sending, so that polling costs the load nothing.
"""

import argparse
import http.client
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date, datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import report  # noqa: E402
import senders  # noqa: E402
import systems  # noqa: E402
from systems import SYSTEMS  # noqa: E402
from tidalite_bench import machine  # noqa: E402

PEERS = Path(os.environ.get("PEERS", "/tmp/peers"))
WARM_BYTES = 150 << 20
ACK_ROWS = 1000
ACK_SECONDS = 5.0
ACK_PAUSE = 0.01
VISIBLE_TIMEOUT = 120

_files, _frame, _parts = {}, [], {}


def line_file(name):
    if name not in _files:
        _files.clear()  # one large file in memory at a time
        _files[name] = senders.LineFile(PEERS / "ingest" / name)
    return _files[name]


def frames(order, processes, hosts):
    if not _frame:
        _frame.append(senders.cpu_frame(hosts))
    if (order, processes) not in _parts:
        _parts.clear()
        _parts[order, processes] = senders.frame_parts(_frame[0], order, processes)
    return _parts[order, processes]


def busy_seconds():
    fields = processor_ticks()
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def stolen_seconds():
    """What a host ran instead of this machine."""
    return processor_ticks()[7] / os.sysconf("SC_CLK_TCK")


def processor_ticks():
    return list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))


def own_seconds():
    return sum(os.times()[:4])


def warm_up(system, data):
    """Half over TCP, half over HTTP; afterwards the tables are gone and the system is idle."""
    lines = senders.renamed(data[: data.find(b"\n", min(len(data) - 1, WARM_BYTES)) + 1], b"warm")
    blocks = list(senders.cut(lines, 1 << 20))
    half = max(1, len(blocks) // 2)
    senders.send_raw(system.ilp_port, lines, blocks[:half], 1, systems.HOST)
    connection = http.client.HTTPConnection(systems.HOST, system.http_port, timeout=120)
    for a, b in blocks[half:]:
        connection.request("POST", "/write", lines[a:b])
        answer = connection.getresponse()
        assert answer.read() == b"" and answer.status == 204, answer.status
    expected = senders.table_rows(lines)
    wait_visible(system, expected)
    system.wait_settled(expected)
    for table in expected:
        system.sql(f'drop table "{table}"')
    time.sleep(1)


def wait_visible(system, expected):
    deadline = time.monotonic() + VISIBLE_TIMEOUT
    for table, rows in expected.items():
        while True:
            seen = system.count(table)
            if seen >= rows:
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"{system.name}: {table} stays at {seen} of {rows} rows")
            time.sleep(0.01)
        if seen > rows:
            raise RuntimeError(f"{system.name}: {table} has {seen} rows, {rows} were sent")
    return time.monotonic()


def checksum(system, expected):
    """Equal for every system that holds the same rows."""
    sums = {}
    for table in expected:
        names = [row[0] for row in system.sql(f'show columns from "{table}"')["dataset"] if row[1] in ("LONG", "DOUBLE")]
        picked = ", ".join(f'sum("{n}")' for n in sorted(names)[:3])
        time_column = "ts" if "ts" in names else "timestamp"
        row = system.sql(f'select count(*), min("{time_column}"), max("{time_column}"), {picked} from "{table}"')["dataset"][0]
        sums[table] = [row[0]] + [str(v).rstrip("Z").rstrip("0") for v in row[1:3]] + [float(f"{v:.9g}") for v in row[3:]]
    return sums


def load(case, args):
    """(expected rows by table, bytes, a function that sends to a system and returns seconds, warm-up bytes)."""
    kind, *rest = case.split(":")
    if kind == "raw":
        f, n = line_file(rest[0]), int(rest[1])
        return f.tables, len(f.data), lambda s: senders.send_raw(s.ilp_port, f.data, f.blocks, n), f.data
    if kind == "tsbs":
        f, n = line_file(rest[0]), int(rest[1])
        return f.tables, len(f.data), lambda s: senders.send_tsbs(s.http_port, s.ilp_port, f.path, n), f.data
    if kind == "df":
        parts = frames(rest[1], int(rest[2]), args.hosts)
        rows = sum(map(len, parts))
        warm = line_file(args.warm_file).data
        send = lambda s: senders.send_frames(senders.frame_conf(rest[0], s.http_port, s.ilp_port), parts)  # noqa: E731
        return {"cpu": rows}, None, send, warm
    raise SystemExit(f"unknown case {case}, see --help")


def measure(system, case, args):
    case, _, processors = case.partition("@")
    expected, size, send, warm = load(case, args)
    if processors:
        case += f" on {processors}"
    with systems.on_processors(int(processors or 0)):
        system.start()
    try:
        warm_up(system, warm)
        machine.touch_memory(args.touch_gib)
        busy, own, server, threads = busy_seconds(), own_seconds(), system.cpu_seconds(), system.thread_seconds()
        start = time.monotonic()
        sent = send(system)
        done = time.monotonic()
        # The loader's own clock leaves out its start and a second of sleep.
        visible = max(0.0, wait_visible(system, expected) - done) + sent
        settled = max(visible, system.wait_settled(expected) - done + sent)
        busy, own, server = busy_seconds() - busy, own_seconds() - own, system.cpu_seconds() - server
        threads = busiest(threads, system.thread_seconds())
        start = time.monotonic()
        os.sync()
        synced = time.monotonic() - start
        disk, parts = system.disk(expected)
        rows = sum(expected.values())
        record = dict(case=case, system=system.name, rows=rows, sent_s=sent, visible_s=visible, settled_s=settled,
                      visible_rows_s=rows / visible, settled_rows_s=rows / settled,
                      visible_mib_s=size and size / visible / 2**20, disk_bytes=disk, disk_parts=parts,
                      server_cpu_s=server, threads_cpu_s=threads, client_cpu_s=own, other_cpu_s=busy - own - server, sync_after_s=synced,
                      resident_mib=system.resident_mib(), checksum=checksum(system, expected))
    finally:
        system.stop()
    return record


def busiest(before, after):
    """Of threads of one name the number, the seconds of all and of the busiest; the ten names with the most."""
    spent = {}
    for thread, (name, seconds) in after.items():
        spent.setdefault(name.rstrip("0123456789-"), []).append(seconds - before.get(thread, (name, 0))[1])
    most = sorted(spent.items(), key=lambda item: -sum(item[1]))[:10]
    return {name: [len(values), round(sum(values), 2), round(max(values), 2)] for name, values in most}


def until(seconds):
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def measure_ack(system, case, args):
    """Latency alone, then while another process pushes a file."""
    f, connections, lines = ack_case(case, args)
    system.start()
    try:
        warm_up(system, f.data)
        senders.acknowledgements(system.http_port, lines, until(0.5), ACK_PAUSE)
        syncs = sync_count(system)
        alone = senders.acknowledgements(system.http_port, lines, until(ACK_SECONDS), ACK_PAUSE)
        syncs = (sync_count(system) - syncs) / len(alone[0]) if syncs is not None else None
        machine.touch_memory(args.touch_gib)
        loaded, stolen = acknowledgements_under_load(system, f, connections, lines, args)
        if not args.load_seconds:
            wait_visible(system, f.tables)
    finally:
        system.stop()
    return dict(case=case, system=system.name, syncs_per_ack_alone=syncs, stolen_s=stolen) | latencies(alone=alone, loaded=loaded)


def measure_null_ack(case, args):
    """The floor: the same client against a server that only writes to a file and syncs it."""
    f, connections, lines = ack_case(case, args)
    delay = args.sync_delay_ms / 1000
    with tempfile.TemporaryDirectory(dir=args.scratch) as folder, senders.NullServer(Path(folder) / "log", delay) as null:
        alone = senders.acknowledgements(null.http_port, lines, until(ACK_SECONDS), ACK_PAUSE)
        loaded, stolen = acknowledgements_under_load(null, f, connections, lines, args)
    return dict(case=case, system="null server that syncs", stolen_s=stolen) | latencies(alone=alone, loaded=loaded)


def measure_floor_ack(system, case, args):
    """What the machine leaves under that load: the server that only syncs is asked while the lines go into the system."""
    f, connections, lines = ack_case(case, args)
    system.start()
    try:
        warm_up(system, f.data)
        machine.touch_memory(args.touch_gib)
        with tempfile.TemporaryDirectory(dir=args.scratch) as folder, senders.NullServer(Path(folder) / "log", args.sync_delay_ms / 1000) as null:
            loaded, stolen = acknowledgements_under_load(system, f, connections, lines, args, http_port=null.http_port)
        if not args.load_seconds:
            wait_visible(system, f.tables)
    finally:
        system.stop()
    return dict(case=case, system=f"null server that syncs, {system.name} loaded", stolen_s=stolen) | latencies(loaded=loaded)


def ack_case(case, args):
    rest = case.split(":")[1:]
    f = line_file(rest[0] if rest else args.warm_file)
    lines = senders.renamed(b"\n".join(f.data[:4 << 20].split(b"\n")[:ACK_ROWS]), b"ack")
    return f, int(rest[1]) if len(rest) > 1 else 1, lines


def acknowledgements_under_load(system, f, connections, lines, args, http_port=None):
    ready = senders.FORK.Event()
    pusher = senders.FORK.Process(target=senders.send_for, args=(system.ilp_port, f, connections, args.load_seconds, ready))
    pusher.start()
    ready.wait()
    stolen = stolen_seconds()
    # The first one waits for this process to get its memory back from the fork.
    senders.acknowledgements(http_port or system.http_port, lines, lambda: False, ACK_PAUSE)
    loaded = senders.acknowledgements(http_port or system.http_port, lines, pusher.is_alive, ACK_PAUSE)
    pusher.join()
    return loaded, stolen_seconds() - stolen


def latencies(**measured):
    record = {}
    for name, (values, computations) in measured.items():
        record[f"{name}_ms"] = [round(value, 2) for value in values]
        for kind, sorted_values in ((name, sorted(values)), (f"{name}_computation", sorted(computations))):
            at = lambda q: sorted_values[min(len(sorted_values) - 1, int(q * len(sorted_values)))]  # noqa: E731, B023
            record |= {f"{kind}_n": len(sorted_values), f"{kind}_p50_ms": at(0.5), f"{kind}_p90_ms": at(0.9),
                       f"{kind}_p99_ms": at(0.99), f"{kind}_max_ms": sorted_values[-1]}
    return record


def sync_count(system):
    if hasattr(system, "metrics"):
        return system.metrics().get("tidalite_log_syncs_total")
    return None


def measure_null(case, args):
    """The same client against a server that forgets everything: its own ceiling, in wall and CPU time."""
    expected, size, send, _ = load(case, args)
    with senders.NullServer() as null:
        busy, own = busy_seconds(), own_seconds()
        sent = send(null)
        own, busy = own_seconds() - own, busy_seconds() - busy
    rows = sum(expected.values())
    return dict(case=case, system="null server", rows=rows, sent_s=sent, visible_s=sent, settled_s=sent, visible_rows_s=rows / sent,
                settled_rows_s=rows / sent, visible_mib_s=size and size / sent / 2**20, client_cpu_s=own, server_cpu_s=None,
                other_cpu_s=busy - own, disk_bytes=None)


def disk_speed(folder):
    """(median ms of an fdatasync after a 4 KiB overwrite, and after an append; MiB/s of a synced sequential write)."""
    path = Path(folder) / "disk-speed"
    page, big = os.urandom(4096), os.urandom(4 << 20)

    def syncs(fd, offset):
        times = []
        for i in range(200):
            start = time.monotonic()
            os.pwrite(fd, page, offset(i))
            os.fdatasync(fd)
            times.append((time.monotonic() - start) * 1e3)
        return statistics.median(times)

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        start = time.monotonic()
        for _ in range(128):
            os.write(fd, big)
        os.fdatasync(fd)
        rate = 512 / (time.monotonic() - start)
        return dict(overwrite_sync_ms=syncs(fd, lambda i: 4096 * i), append_sync_ms=syncs(fd, lambda i: (512 << 20) + 4096 * i),
                    sequential_write_mib_s=rate)
    finally:
        os.close(fd)
        path.unlink()


def environment(systems, args):
    def text(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()
        except OSError:
            return ""

    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    scratch = text("df", "--output=fstype", str(args.scratch)).splitlines()
    return dict(
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), cpu=cpu, cores=os.cpu_count(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30), kernel=platform.release(),
        file_system=scratch[-1] if scratch else "?", python=platform.python_version(),
        client=f"questdb {text(sys.executable, '-c', 'import questdb; print(questdb.__version__)')}",
        commit=text("git", "rev-parse", "--short", "HEAD") + (" with uncommitted changes" if text("git", "status", "--porcelain", "../crates") else ""),
        systems={s.name: dict(version=s.version(), durability=s.durability, settled=s.settled_means) for s in systems},
        settings=dict(runs=args.runs, warm_mib=WARM_BYTES >> 20, sync_delay_ms=args.sync_delay_ms, touch_gib=args.touch_gib, load_seconds=args.load_seconds, env=args.env), disk=disk_speed(args.scratch),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--systems", default="questdb,tidalite")
    parser.add_argument("--name", default="ingest")
    parser.add_argument("--in-turns", action="store_true", help="all cases in each run, for ratios between them: what slows the machine for minutes slows all")
    parser.add_argument("--sync-delay-ms", type=int, default=0)
    parser.add_argument("--load-seconds", type=float, default=0, help="ack: push into tables in turns so long, in place of the file once")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for Tidalite's server")
    parser.add_argument("--no-null", action="store_true", help="skip the clients' own ceiling")
    parser.add_argument("--touch-gib", type=int, default=0,
                        help="memory to have from the host before each clock starts, for machines whose host takes free memory back")
    parser.add_argument("--hosts", type=int, default=4000, help="hosts of the frame of df cases, 1440 rows each")
    parser.add_argument("--warm-file", default="cpu.ilp", help="what ack and df cases warm the server up with")
    parser.add_argument("--scratch", type=Path, default=PEERS / "run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    args.scratch.mkdir(parents=True, exist_ok=True)
    extra = dict(pair.split("=", 1) for pair in args.env)
    if args.sync_delay_ms:
        extra["TIDALITE_SYNC_DELAY_MS"] = str(args.sync_delay_ms)
    systems = [SYSTEMS[n](args.scratch, extra if n == "tidalite" else None) for n in args.systems.split(",")]
    about, records = environment(systems, args), []
    stem = args.out / f"{date.today()}-{args.name}"

    def keep(record):
        records.append(record)
        print(json.dumps(record), flush=True)
        report.write(stem, about, records)

    turns = [(case, run) for case in args.cases for run in range(args.runs)]
    if args.in_turns:
        turns.sort(key=lambda turn: turn[1])
    for case, run in turns:
        is_ack = case.split(":")[0] == "ack"
        if run == 0 and not args.no_null and case.split(":")[0] != "raw":
            keep((measure_null_ack if is_ack else measure_null)(case, args) | {"run": 0})
        for system in systems if run % 2 == 0 else reversed(systems):
            try:
                keep((measure_ack if is_ack else measure)(system, case, args) | {"run": run})
                if is_ack and not args.no_null:
                    keep(measure_floor_ack(system, case, args) | {"run": run})
            except (RuntimeError, OSError, AssertionError, KeyError, ValueError) as error:
                keep(dict(case=case, system=system.name, run=run, error=f"{type(error).__name__}: {error}"[:400]))
    print(f"{stem}.md")


if __name__ == "__main__":
    main()
