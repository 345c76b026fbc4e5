"""The questions of the Time Series Benchmark Suite, devops and iot: what is drawn for each, and its text in every dialect.

A type says how many hosts and hours are drawn (0 hosts: all; 0 hours: no window; -1 hosts: a fleet) and makes the text from
a dialect and what was drawn. The devops questions are the suite's; of iot it has texts for other schemas only: ours keep the
tags in the row, group by truck and driver where it groups by a row of tags, and keep its quirks: hours and activity are
integer quotients, and a "breakdown" is a bucket of ten minutes in which no status is missing.
"""

from collections import namedtuple

METRICS = [f"usage_{name}" for name in "user system idle nice iowait irq softirq steal guest guest_nice".split()]
FLEET = -1
# In the order in which the original draws from them.
FLEETS = ["East", "West", "North", "South"]

# Answers of hundreds of thousands of rows.
LARGE = {"high-cpu-all"}

Kind = namedtuple("Kind", "hosts hours text")
# `fleet` and `names` as text to be put between quotes, `hours` as asked, at most those of the data.
Drawn = namedtuple("Drawn", "from_ns to_ns names fleet hours")


def of(use_case):
    return iot() if use_case == "iot" else devops()


def maxima(count):
    return [f"max({m}) AS max_{m}" for m in METRICS[:count]]


def devops():
    def sampled(minutes, values):
        return lambda d, q: d.sampled(minutes, [], values, "cpu", f"{d.one_of('hostname', q.names)} AND {d.window(q.from_ns, q.to_ns)}")

    def twice(count):
        return lambda d, q: d.sampled(60, ["hostname"], [f"{d.mean(m)} AS avg_{m}" for m in METRICS[:count]], "cpu", d.window(q.from_ns, q.to_ns))

    found = {}
    for name in ("1-1-1", "1-1-12", "1-8-1", "5-1-1", "5-1-12", "5-8-1"):
        metrics, hosts, hours = map(int, name.split("-"))
        found[f"single-groupby-{name}"] = Kind(hosts, hours, sampled(1, maxima(metrics)))
    for name, hosts, hours in (("1", 1, 8), ("8", 8, 8), ("32-24", 32, 24)):
        found[f"cpu-max-all-{name}"] = Kind(hosts, hours, sampled(60, maxima(10)))
    for name, metrics in (("1", 1), ("5", 5), ("all", 10)):
        found[f"double-groupby-{name}"] = Kind(0, 12, twice(metrics))
    found["groupby-orderby-limit"] = Kind(0, 1, lambda d, q: d.last_buckets(5, 1, "max(usage_user) AS max_usage_user", "cpu", d.before(q.to_ns)))
    found["high-cpu-1"] = Kind(1, 12, lambda d, q: d.rows("cpu", f"usage_user > 90 AND {d.one_of('hostname', q.names)} AND {d.window(q.from_ns, q.to_ns)}"))
    found["high-cpu-all"] = Kind(0, 12, lambda d, q: d.rows("cpu", f"usage_user > 90 AND {d.window(q.from_ns, q.to_ns)}"))
    found["lastpoint"] = Kind(0, 0, lambda d, q: d.latest("*", "cpu", "hostname"))
    return found


def iot():
    def last(table, column):
        return lambda d, q: d.latest(f"name, driver, {column}", table, "name", f"fleet = '{q.fleet}' AND name IS NOT NULL")

    def last_where(columns, condition):
        def text(d, q):
            latest = d.latest(f"name, driver, {columns}", "diagnostics", "name", f"fleet = '{q.fleet}' AND name IS NOT NULL")
            return f"SELECT name, driver, {columns.split(',')[0]} FROM ({latest}) l WHERE {condition}"
        return text

    def stationary(d, q):
        inner = f"SELECT name, driver, {d.mean('velocity')} AS av FROM readings WHERE {d.window(q.from_ns, q.to_ns)} AND fleet = '{q.fleet}' AND name IS NOT NULL GROUP BY name, driver"
        return f"SELECT name, driver FROM ({inner}) t WHERE av < 1"

    def long(buckets_an_hour):
        def text(d, q):
            where = f"{d.window(q.from_ns, q.to_ns)} AND fleet = '{q.fleet}' AND name IS NOT NULL"
            inner = d.sampled(10, ["name", "driver"], [f"{d.mean('velocity')} AS av"], "readings", where)
            counted = f"SELECT name, driver, count(*) AS n FROM ({inner}) b WHERE av > 1 GROUP BY name, driver"
            return f"SELECT name, driver FROM ({counted}) c WHERE n > {int(buckets_an_hour * q.hours)}"
        return text

    def fuel(d, q):
        return (f"SELECT fleet, {d.mean('fuel_consumption')} AS used, {d.mean('nominal_fuel_consumption')} AS projected FROM readings "
                "WHERE velocity > 1 AND fleet IS NOT NULL AND nominal_fuel_consumption IS NOT NULL AND name IS NOT NULL GROUP BY fleet")

    def driving_duration(d, q):
        inner = d.sampled(10, ["fleet", "name", "driver"], [f"{d.mean('velocity')} AS av"], "readings")
        hours = f"SELECT {d.bucket(1440, 'bucket')} AS day, fleet, name, driver, {d.quotient('count(*)', 6)} AS hours FROM ({inner}) b WHERE av > 1 GROUP BY 1, 2, 3, 4"
        return f"SELECT fleet, name, driver, {d.mean('hours')} AS hours FROM ({hours}) h GROUP BY fleet, name, driver"

    def driving_session(d, q):
        inner = d.sampled(10, ["name"], [f"{d.mean('velocity')} AS av"], "readings", "name IS NOT NULL")
        over = "OVER (PARTITION BY name ORDER BY bucket)"
        status = f"SELECT name, bucket, CASE WHEN av > 5 THEN 1 ELSE 0 END AS driving FROM ({inner}) AS b"
        before = f"SELECT name, bucket, driving, {d.shifted('lag', 'driving')} {over} AS previous FROM ({status}) AS s"
        changes = f"SELECT name, bucket AS start, {d.shifted('lead', 'bucket')} {over} AS stop, driving FROM ({before}) p WHERE driving <> previous AND previous IS NOT NULL"
        return (f"SELECT name, {d.bucket(1440, 'start')} AS day, {d.mean(d.seconds('start', 'stop'))} AS duration FROM ({changes}) c "
                f"WHERE driving = 1 GROUP BY 1, 2 ORDER BY 1, 2")

    def load(d, q):
        inner = f"SELECT name, fleet, model, load_capacity, {d.mean('current_load')} AS carried FROM diagnostics WHERE name IS NOT NULL GROUP BY name, fleet, model, load_capacity"
        return f"SELECT fleet, model, load_capacity, {d.mean('carried / load_capacity')} AS share FROM ({inner}) t GROUP BY fleet, model, load_capacity"

    def activity(d, q):
        inner = d.sampled(10, ["name", "fleet", "model"], ["count(*) AS n", f"{d.mean('status')} AS av"], "diagnostics", "name IS NOT NULL")
        days = f"SELECT fleet, model, {d.bucket(1440, 'bucket')} AS day, n FROM ({inner}) b WHERE av < 1"
        return f"SELECT fleet, model, day, {d.quotient('sum(n)', 144)} AS activity FROM ({days}) a GROUP BY fleet, model, day ORDER BY day"

    def breakdowns(d, q):
        inner = d.sampled(10, ["name", "model"], ["count(status) AS known", "count(*) AS n"], "diagnostics", "name IS NOT NULL")
        broken = f"SELECT name, model, bucket, CASE WHEN known = n THEN 1 ELSE 0 END AS broken FROM ({inner}) AS b"
        following = f"SELECT model, broken, {d.shifted('lead', 'broken')} OVER (PARTITION BY name, model ORDER BY bucket) AS following FROM ({broken}) AS f"
        return f"SELECT model, count(*) AS n FROM ({following}) g WHERE broken = 0 AND following = 1 GROUP BY model"

    return {
        "single-last-loc": Kind(1, 0, lambda d, q: d.latest_of(q.names[0], "name, driver, longitude, latitude", "readings")),
        "last-loc": Kind(FLEET, 0, last("readings", "longitude, latitude")),
        "low-fuel": Kind(FLEET, 0, last_where("fuel_state", "fuel_state < 0.1")),
        "high-load": Kind(FLEET, 0, last_where("current_load, load_capacity", "current_load / load_capacity > 0.9")),
        "stationary-trucks": Kind(FLEET, 1 / 6, stationary),
        "long-driving-sessions": Kind(FLEET, 4, long(5.5)),
        "long-daily-sessions": Kind(FLEET, 24, long(2.5)),
        "avg-vs-projected-fuel-consumption": Kind(0, 0, fuel),
        "avg-daily-driving-duration": Kind(0, 0, driving_duration),
        "avg-daily-driving-session": Kind(0, 0, driving_session),
        "avg-load": Kind(0, 0, load),
        "daily-activity": Kind(0, 0, activity),
        "breakdown-frequency": Kind(0, 0, breakdowns),
    }
