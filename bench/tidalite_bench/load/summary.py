"""Numbers of the report: percentiles, the slope of memory, shares of the processors, and the goals."""

import math
from array import array

# Waiting time of the server's threads, beside the processor times of processes.
WAITING = "the server's threads, waiting for a processor"
# First rows of the table of latencies, in this order.
ORDER = ["metadata", "metadata, prober's clock", "dashboard", "panel", "query HTTP", "query PG", "write HTTP", "row TCP visible"]


def percentile(ordered, part):
    """By nearest rank: the smallest value that at least `part` of all do not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def merged(parts):
    """{name: sorted latencies} of the latencies of several processes, each {name: bytes of doubles}."""
    found = {}
    for part in parts:
        for name, values in part.items():
            found.setdefault(name, array("d")).frombytes(values)
    return {name: sorted(values) for name, values in found.items()}


def latency_table(latencies):
    names = [n for n in ORDER if n in latencies] + sorted(n for n in latencies if n not in ORDER)
    rows = []
    for name in names:
        ordered = latencies[name]
        rows.append([name, len(ordered), *(f"{value * 1e3:.2f}" for value in (percentile(ordered, 0.5), percentile(ordered, 0.99), ordered[-1]))])
    return ["latency", "n", "p50 ms", "p99 ms", "max ms"], rows


def slope(points):
    """(slope, its standard error) of the least-squares line through (x, y); zeros of fewer than three different x."""
    if len({x for x, _ in points}) < 3:
        return 0.0, 0.0
    mean_x, mean_y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    found = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    residual = sum((y - mean_y - found * (x - mean_x)) ** 2 for x, y in points)
    return found, math.sqrt(residual / (len(points) - 2) / spread)


def after_first_quarter(samples):
    """Samples without those of the first quarter of the time, in which caches and pools fill."""
    if not samples:
        return []
    begin, end = samples[0]["t"], samples[-1]["t"]
    return [s for s in samples if s["t"] >= begin + (end - begin) / 4]


def memory_series(samples):
    """{name: [(hours, MiB)]} of the resident memory and of the gauges of the server that count bytes."""
    series = {"RSS": [(s["t"] / 3600, s["rss_mib"]) for s in samples], "RSS, anonymous": [(s["t"] / 3600, s["anonymous_mib"]) for s in samples]}
    for name in sorted({n for s in samples for n in s["memory"] if "bytes" in n and "limit" not in n}):
        series[name] = [(s["t"] / 3600, s["memory"][name] / 2**20) for s in samples if name in s["memory"]]
    return series


def memory_table(samples):
    rows = []
    late = after_first_quarter(samples)
    for name, points in memory_series(late).items():
        values, (found, error) = [y for _, y in points], slope(points)
        rows.append([name, f"{values[0]:.1f}", f"{min(values):.1f}", f"{max(values):.1f}", f"{values[-1]:.1f}", f"{found:+.1f} ± {error:.1f}"])
    return ["memory after the first quarter", "first MiB", "min", "max", "last", "MiB/hour ± standard error"], rows


def cores_in_use(samples, name):
    """Processors that a process, or the machine, used on average between its first and its last sample."""
    seen = [(s["t"], s["cpu_s"][name]) for s in samples if name in s["cpu_s"]]
    return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0]) if len(seen) > 1 else 0.0


def cpu_table(samples, cores):
    """Processors in use on average: by the server, by each process of the generator, and by all others."""
    used = {name: cores_in_use(samples, name) for name in dict.fromkeys(name for s in samples for name in s["cpu_s"])}
    machine, waiting = used.pop("machine", 0.0), used.pop(WAITING, 0.0)
    used["the generator as a whole"] = sum(value for name, value in used.items() if name != "server")
    used["other processes"] = max(0.0, machine - used.get("server", 0.0) - used["the generator as a whole"])
    rows = [[name, f"{value:.2f}", f"{value / cores:.0%}"] for name, value in used.items()]
    return [f"processors in use, of {cores}", "cores", "share"], [*rows, [WAITING, f"{waiting:.2f}", ""]]


def missed_goals(latencies, samples, metadata_p99_max_ms, memory_slope_max):
    """Texts of goals that were missed; a limit of 0 sets no goal."""
    missed = []
    if metadata_p99_max_ms:
        p99 = percentile(latencies["metadata"], 0.99) * 1e3 if latencies.get("metadata") else math.inf
        if p99 > metadata_p99_max_ms:
            missed.append(f"p99 of metadata is {p99:.2f} ms, the limit is {metadata_p99_max_ms:g} ms")
    if memory_slope_max:
        found, _ = slope(memory_series(after_first_quarter(samples))["RSS"])
        if found > memory_slope_max:
            missed.append(f"resident memory grows by {found:.1f} MiB/hour, the limit is {memory_slope_max:g}")
    return missed
