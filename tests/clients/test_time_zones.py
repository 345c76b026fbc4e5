"""AT TIME ZONE around the offset changes of every time zone, compared with PostgreSQL.

For each zone that both databases know: instants to local times, local times to instants, and both ways again, at the switches
of its clock since 1972 and up to an hour around them. `ZONES=0` compares all zones; without, 30 of them by the seed of the day
(`RANDOM_SEED`).
"""

import datetime as dt
import os
import random
import zoneinfo

import pytest
from postgres import Postgres, programs
from referees import Link, difference

FIRST, LAST = dt.datetime(1972, 1, 1), dt.datetime(2037, 12, 31)
"""Editions of the time zone database differ before 1970."""
STEP = dt.timedelta(days=20)
AROUND = [dt.timedelta(microseconds=us) for us in (-3_600_000_000, -1_800_000_000, -1, 0, 1, 1_800_000_000, 3_600_000_000)]
SWITCHES_MAX = 24
FORMS = ["v AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'", "v AT TIME ZONE '{zone}' AT TIME ZONE 'UTC'", "v AT TIME ZONE '{zone}' AT TIME ZONE '{zone}'", "date_trunc('day', v AT TIME ZONE 'UTC' AT TIME ZONE '{zone}')",
         "extract(epoch FROM v AT TIME ZONE '{zone}')::bigint"]


def offset(zone, moment):
    return moment.replace(tzinfo=dt.timezone.utc).astimezone(zone).utcoffset()


def switches(zone):
    """Instants at which the offset of the zone changes, to the second."""
    found, at = [], FIRST
    while at < LAST:
        if offset(zone, at) != offset(zone, at + STEP):
            low, high = at, at + STEP
            while high - low > dt.timedelta(seconds=1):
                middle = low + dt.timedelta(seconds=(high - low).total_seconds() // 2)
                low, high = (middle, high) if offset(zone, middle) == offset(zone, at) else (low, middle)
            found.append(high)
        at += STEP
    return found


def moments(r, zone):
    """Times around switches, as instants and as the local times of both offsets."""
    found = switches(zone)
    chosen = found if len(found) <= SWITCHES_MAX else r.sample(found, SWITCHES_MAX)
    out = {FIRST, LAST}
    for at in chosen:
        for shift in (dt.timedelta(0), offset(zone, at), offset(zone, at - dt.timedelta(seconds=1))):
            out |= {at + shift + more for more in AROUND}
    return sorted(out)


def test_clocks_of_all_zones(server):
    if programs() is None:
        pytest.skip("there is no PostgreSQL server here (initdb and postgres, package postgresql-15)")
    seed, count = int(os.environ.get("RANDOM_SEED") or dt.date.today().strftime("%Y%m%d")), int(os.environ.get("ZONES") or 30)
    r, postgres, compared = random.Random(seed), Postgres().start(), 0
    try:
        ours, theirs = Link(server.pg_port), Link(postgres.port, postgres.USER, postgres.DATABASE)
        known = zoneinfo.available_timezones()
        names = sorted(name for (name,) in theirs.must("SELECT name FROM pg_timezone_names") if name in known and not name.startswith(("posix", "localtime")))
        assert len(names) > 300
        findings = []
        for name in names if not count else r.sample(names, count):
            times = ", ".join(f"(timestamp '{at}')" for at in moments(r, zoneinfo.ZoneInfo(name)))
            items = ", ".join(form.replace("{zone}", name) for form in FORMS)
            sql = f"SELECT v, {items} FROM (VALUES {times}) t(v) ORDER BY v"
            found, due = ours.ask(sql), theirs.ask(sql)
            assert not due.is_error, due.message
            compared += len(due.rows) * len(FORMS)
            if found.is_error or difference(found, due, is_ordered=True):
                findings.append(f"{name}: {found.message[:200] or difference(found, due, is_ordered=True)}")
        print(f"{compared} times compared, seed {seed}")
        assert not findings, f"seed {seed}:\n" + "\n".join(findings[:20])
    finally:
        postgres.stop()
