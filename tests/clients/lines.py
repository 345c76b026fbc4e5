"""Deterministic line files in the shape of TSBS, and a reading of them that shares nothing with the server.

In: a seed and sizes. Out: lines as bytes; their content as pyarrow tables with one row per line, in the order of the file.
Always: a line has no escapes, a name is a tag in all lines of a table or a field in all, one type per column.
"""

import random
import re

import pyarrow as pa

START_NS = 1451606400 * 10**9
REGIONS = "us-east-1 us-west-1 us-west-2 eu-west-1 eu-central-1 ap-southeast-1 ap-southeast-2 ap-northeast-1 sa-east-1".split()
CPU_FIELDS = ["usage_" + f for f in "user system idle nice iowait irq softirq steal guest guest_nice".split()]


def cpu_lines(hosts, steps, seed=123):
    r = random.Random(seed)
    heads, state = [], []
    for h in range(hosts):
        region = r.choice(REGIONS)
        tags = dict(hostname=f"host_{h}", region=region, datacenter=region + r.choice("abc"), rack=r.randrange(100),
                    os=r.choice(["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"]), arch=r.choice(["x64", "x86"]), team=r.choice(["SF", "NYC", "LON", "CHI"]),
                    service=r.randrange(20), service_version=r.randrange(2), service_environment=r.choice(["production", "staging", "test"]))
        heads.append("cpu," + ",".join(f"{k}={v}" for k, v in tags.items()))
        state.append([r.uniform(0, 100) for _ in CPU_FIELDS])
    lines = []
    for step in range(steps):
        for h in range(hosts):
            state[h] = [min(100.0, max(0.0, x + r.gauss(0, 1))) for x in state[h]]
            fields = ",".join(f"{name}={int(x)}i" for name, x in zip(CPU_FIELDS, state[h]))
            lines.append(f"{heads[h]} {fields} {START_NS + step * 10**10}".encode())
    return lines


def iot_lines(trucks, steps, seed=123):
    """Two tables, floats of many digits, and now and then a tag or a field left out."""
    r = random.Random(seed)
    models = {"F-150": (2000, 200, 15), "G-2000": (5000, 300, 19), "H-2": (1500, 150, 12)}
    fleet = []
    for t in range(trucks):
        model = r.choice(list(models))
        tags = dict(name=f"truck_{t}", fleet=r.choice(["East", "West", "North", "South"]), driver=r.choice(["Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"]),
                    model=model, device_version=r.choice(["v1.0", "v1.5", "v2.0", "v2.3"]))
        capacities = dict(zip(["load_capacity", "fuel_capacity", "nominal_fuel_consumption"], models[model]))
        fleet.append((tags, capacities, [r.uniform(-90, 90), r.uniform(-180, 180)]))

    def line(name, tags, fields, ts):
        tags = {k: v for k, v in tags.items() if k == "name" or r.random() > 0.001}
        fields = {k: v for k, v in fields.items() if r.random() > 0.02} or {"load_capacity": 1}
        head = ",".join([name, *(f"{k}={v}" for k, v in tags.items())])
        return f"{head} {','.join(f'{k}={v}' for k, v in fields.items())} {ts}".encode()

    lines = []
    for step in range(steps):
        ts = START_NS + step * 60 * 10**9
        for tags, capacities, place in fleet:
            place[0], place[1] = place[0] + r.uniform(-0.005, 0.005), place[1] + r.uniform(-0.005, 0.005)
            lines.append(line("readings", tags, capacities | dict(latitude=place[0], longitude=place[1], elevation=r.randrange(5000), velocity=r.uniform(0, 100),
                                                                  heading=r.uniform(0, 360), grade=r.randrange(100), fuel_consumption=round(r.uniform(0, 50), 1)), ts))
        for tags, capacities, _ in fleet:
            lines.append(line("diagnostics", tags, capacities | dict(fuel_state=r.random(), current_load=r.uniform(0, 5000), status=f"{r.randrange(5)}i"), ts))
    return lines


def shuffled(lines, window, seed=5):
    r, out = random.Random(seed), []
    for a in range(0, len(lines), window):
        part = lines[a : a + window]
        r.shuffle(part)
        out += part
    return out


def blob(lines):
    return b"\n".join(lines) + b"\n"


def read_independently(lines):
    """{table: pyarrow table}: tags as strings, `…i` as int64, other fields as double, `timestamp` in ns, absent as null."""
    tables = {}
    for line in lines:
        head, fields, ts = line.decode().split(" ")
        name, *tags = head.split(",")
        rows, kinds = tables.setdefault(name, ([], {}))
        row = {"timestamp": int(ts)}
        for pair in tags:
            k, v = pair.split("=")
            row[k] = v
            kinds.setdefault(k, pa.string())
        for pair in fields.split(","):
            k, v = pair.split("=")
            whole = re.fullmatch(r"(-?\d+)i", v)
            row[k] = int(whole[1]) if whole else float(v)
            kinds.setdefault(k, pa.int64() if whole else pa.float64())
        rows.append(row)
    return {
        name: pa.table({k: pa.array([row.get(k) for row in rows], kind) for k, kind in {**kinds, "timestamp": pa.int64()}.items()})
        for name, (rows, kinds) in tables.items()
    }
