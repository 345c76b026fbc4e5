"""The questions of the Time Series Benchmark Suite as DuckDB is asked them, over rows whose answers are worked out by hand."""

import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from tidalite_bench import answers, dialects, tsbs, tsbs_queries  # noqa: E402

START = 1_451_606_400_000_000_000
HOUR = 3600 * 10**9
DRAWN = tsbs_queries.Drawn(START, START + 4 * HOUR, ["truck_1"], "South", 4)


@pytest.fixture(scope="module")
def trucks():
    """truck_1 drives from 00:00 to 02:00, stands until 03:00, drives until 03:30; truck_2 stands; truck_3 is of another fleet."""
    db = duckdb.connect()
    tags = "name VARCHAR, fleet VARCHAR, driver VARCHAR, model VARCHAR, load_capacity DOUBLE, nominal_fuel_consumption DOUBLE, timestamp TIMESTAMP"
    db.execute(f"CREATE TABLE readings ({tags}, longitude DOUBLE, latitude DOUBLE, velocity DOUBLE, fuel_consumption DOUBLE)")
    db.execute(f"CREATE TABLE diagnostics ({tags}, fuel_state DOUBLE, current_load DOUBLE, status BIGINT)")
    for name, fleet, driver in (("truck_1", "South", "Andy"), ("truck_2", "South", "Seth"), ("truck_3", "West", "Trish")):
        for minute in range(210):
            moves = name == "truck_1" and (minute < 120 or minute >= 180)
            row = [name, fleet, driver, "H-2", 1500.0, 12.0, f"2016-01-01 {minute // 60:02}:{minute % 60:02}:00"]
            db.execute(f"INSERT INTO readings VALUES ({', '.join('?' * 11)})", [*row, float(minute), 50.0, 60.0 if moves else 0.0, 10.0 if moves else 1.0])
            # The fuel of truck_2 was low, and is not any more; a status of truck_2 is missing in the second ten minutes.
            fuel = 0.05 if name == "truck_1" or minute < 100 else 0.9
            status = None if name == "truck_2" and minute == 15 else 0
            db.execute(f"INSERT INTO diagnostics VALUES ({', '.join('?' * 10)})", [*row, fuel, 1400.0 if name == "truck_1" else 100.0, status])
    return db


@pytest.mark.parametrize(("kind", "expected"), [
    ("single-last-loc", [["truck_1", "Andy", 209, 50]]),
    ("last-loc", [["truck_1", "Andy", 209, 50], ["truck_2", "Seth", 209, 50]]),
    ("low-fuel", [["truck_1", "Andy", 0.05]]),
    ("high-load", [["truck_1", "Andy", 1400]]),
    ("stationary-trucks", [["truck_2", "Seth"]]),
    # Fifteen buckets of ten minutes are driven; 22 are asked for in four hours, 5 in one.
    ("long-driving-sessions", []),
    ("long-daily-sessions", [["truck_1", "Andy"]]),
    ("avg-vs-projected-fuel-consumption", [["South", 10, 12]]),
    # 15 buckets are two hours and a half: two.
    ("avg-daily-driving-duration", [["South", "truck_1", "Andy", 2]]),
    # The first session has no change before it; the second one none after it.
    ("avg-daily-driving-session", [["truck_1", "2016-01-01 00:00:00", None]]),
    ("avg-load", [["South", "H-2", 1500, (1400 + 100) / 2 / 1500], ["West", "H-2", 1500, 100 / 1500]]),
    # 420 rows of the South in buckets whose mean status is below 1, and 210 of the West, by 144.
    ("daily-activity", [["South", "H-2", "2016-01-01", 2], ["West", "H-2", "2016-01-01", 1]]),
    # truck_2's second bucket lacks a status, its third does not.
    ("breakdown-frequency", [["H-2", 1]]),
])
def test_an_iot_question_means_what_it_says(trucks, kind, expected):
    drawn = DRAWN if kind != "long-daily-sessions" else DRAWN._replace(hours=2)
    text = tsbs_queries.iot()[kind].text(dialects.Dialect(), drawn)
    assert answers.same(answers.plain(trucks.execute(text).fetchall()), answers.plain(expected)), text


def test_all_types_have_a_text_in_every_dialect():
    assert len(tsbs_queries.iot()) == 13 and len(tsbs_queries.devops()) == 16
    for use_case in ("iot", "cpu-only"):
        for kind in tsbs_queries.of(use_case).values():
            texts = {name: kind.text(dialect, DRAWN) for name, dialect in dialects.DIALECTS.items()}
            assert texts["questdb"] == texts["tidalite-server"], "the same text for both"
            assert all("{" not in text for text in texts.values())


def test_a_bucket_of_ten_minutes_is_the_same_everywhere():
    db = duckdb.connect()
    buckets = {name: db.execute(f"SELECT {dialects.DIALECTS[name].bucket(10, 't')} FROM (SELECT TIMESTAMP '2016-01-01 03:59:59' AS t)").fetchone() for name in ("duckdb", "hyper")}
    assert buckets["duckdb"] == buckets["hyper"]


def test_the_geometric_mean_compares_with_others_and_with_those_of_the_same_clock():
    def record(case, system, clock, seconds):
        return {"case": case, "system": system, "clock": clock, "seconds": seconds, "queries": 1}

    http, process = "over HTTP", "within its process"
    records = [
        record("a", "tidalite-server", http, 2.0), record("a", "tidalite-process", process, 1.0),
        record("a", "questdb", http, 8.0), record("a", "duckdb", process, 4.0),
        record("b", "tidalite-server", http, 2.0), record("b", "tidalite-process", process, 1.0),
        record("b", "questdb", http, 2.0), record("b", "duckdb", process, 16.0),
    ]
    # 2/4 and 2/2; 1/4 and 1/2. Of the same clock 2/8 and 2/2; 1/4 and 1/16. QuestDB has our server beside it: 8/2, 2/2.
    means = tsbs.relative(records)
    assert means["tidalite-server"] == pytest.approx(0.5**0.5) and means["tidalite-process"] == pytest.approx(0.125**0.5)
    means = tsbs.relative(records, by_clock=True)
    assert means["tidalite-server"] == pytest.approx(0.5) and means["tidalite-process"] == pytest.approx(1 / 8)
    assert means["questdb"] == pytest.approx(2.0)
