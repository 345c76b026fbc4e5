"""Data sets, made once into the cache folder; each is named with its seed, size and md5."""

import hashlib
import subprocess

from . import install


def folder():
    path = install.CACHE / "data"
    path.mkdir(parents=True, exist_ok=True)
    return path


def md5(path):
    digest = hashlib.md5()
    with open(path, "rb") as file:
        while piece := file.read(1 << 22):
            digest.update(piece)
    return digest.hexdigest()


def made(path, make):
    """The file, made under another name first: one that is there is whole."""
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        make(unfinished)
        unfinished.rename(path)
    return path


def generated(name, *arguments):
    """What tidalite-generate writes."""
    def make(path):
        with open(path, "wb") as out:
            subprocess.run([install.binary("tidalite-generate"), *map(str, arguments)], stdout=out, stderr=subprocess.DEVNULL, check=True)

    return made(folder() / name, make)


def bars(size, seed=1):
    """Minute bars by QuasarDB's method, about `size` bytes."""
    return generated(f"bars-{size}-{seed}.csv", "bars", "--bytes", size, "--seed", seed)


def walk(rows, seed=7):
    """Minute bars without a gap, four decimals: a plain random walk, 118 MiB for 2,030,000 rows."""
    def make(path):
        import numpy as np

        chance = np.random.default_rng(seed)
        times = np.datetime64("2020-01-01T00:00:00") + np.arange(rows) * np.timedelta64(60, "s")
        close = 100 + np.cumsum(chance.normal(0, 0.02, rows))
        opened = np.concatenate([[100], close[:-1]])
        high = np.maximum(opened, close) + abs(chance.normal(0, 0.02, rows))
        low = np.minimum(opened, close) - abs(chance.normal(0, 0.02, rows))
        volume = chance.integers(1, 200000, rows)
        texts = np.datetime_as_string(times, unit="s")
        with open(path, "w") as out:
            out.write("timestamp,open,high,low,close,volume\n")
            out.writelines("%sZ,%.4f,%.4f,%.4f,%.4f,%d\n" % row for row in zip(*(c.tolist() for c in (texts, opened, high, low, close, volume))))

    return made(folder() / f"walk-{rows}-{seed}.csv", make)


def tsbs_arguments(use_case, scale, start_s, end_s, interval_s, seed=123, points=0):
    return ["tsbs", "--use-case", use_case, "--scale", scale, "--start-s", start_s, "--end-s", end_s,
            "--log-interval-s", interval_s, "--seed", seed, "--max-data-points", points]


def tsbs(use_case, scale, start_s, end_s, interval_s, seed=123, points=0):
    """Line protocol of the Time Series Benchmark Suite."""
    name = f"tsbs-{use_case}-{scale}-{start_s}-{end_s}-{interval_s}-{points}-{seed}.ilp"
    return generated(name, *tsbs_arguments(use_case, scale, start_s, end_s, interval_s, seed, points))


def lines_in(path):
    with open(path, "rb") as file:
        return sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 22), b""))


def readings(rows, trucks=5000, seed=20240601, silent=False):
    """Readings of moving trucks as Parquet: TSBS's walks, five texts, ten doubles, in order of time. The last truck may be
    silent after the first day."""
    def make(path):
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        chance, start = np.random.default_rng(seed), np.datetime64("2024-01-01T00:00:00", "us").astype("int64")
        texts = {"name": [f"truck_{i}" for i in range(trucks)], "fleet": ["East", "West", "North", "South"],
                 "driver": ["Albert", "Andy", "Derek", "Rodney", "Seth", "Trish"], "model": ["F-150", "G-2000", "H-2"],
                 "device_version": ["v1.0", "v1.5", "v2.0", "v2.3"]}
        picked = {n: np.arange(trucks) if n == "name" else chance.integers(0, len(w), trucks) for n, w in texts.items()}
        walks = {"latitude": (-90, 90, .005), "longitude": (-180, 180, .005), "elevation": (0, 5000, 50), "velocity": (0, 100, 10),
                 "heading": (0, 360, 25), "grade": (0, 100, 5), "fuel_consumption": (0, 50, 5)}
        at = {n: chance.uniform(low, high, trucks) for n, (low, high, _) in walks.items()}
        fixed = {"load_capacity": np.array([1500., 5000., 1500.]), "fuel_capacity": np.array([200., 300., 150.]),
                 "nominal_fuel_consumption": np.array([15., 19., 12.])}
        writer = None
        minutes = rows // trucks
        for first in range(0, minutes, 200):
            count = min(200, minutes - first)
            columns = {"ts": pa.array(start + np.repeat(np.arange(first, first + count, dtype=np.int64), trucks) * 60_000_000, pa.timestamp("us"))}
            for name, words in texts.items():
                columns[name] = pa.DictionaryArray.from_arrays(pa.array(np.tile(picked[name], count).astype(np.int32)), pa.array(words))
            for name, (low, high, step) in walks.items():
                values = np.cumsum(chance.normal(0, step, (count, trucks)), axis=0) + at[name] - low
                values = np.mod(values, 2 * (high - low))
                values = np.minimum(values, 2 * (high - low) - values) + low
                at[name] = values[-1].copy()
                columns[name] = pa.array(np.round(values, 5).ravel())
            for name, values in fixed.items():
                columns[name] = pa.array(np.tile(values[picked["model"]], count))
            table = pa.table(columns)
            if silent and first + count > 1440:
                table = table.filter(np.tile(np.arange(trucks) < trucks - 1, count) | np.repeat(np.arange(first, first + count) < 1440, trucks))
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1, use_dictionary=list(texts))
            writer.write_table(table, row_group_size=1_000_000)
        writer.close()

    return made(folder() / f"readings-{rows}-{trucks}-{seed}{'-silent' if silent else ''}.parquet", make)


def ticks(table, rows, symbols=100, seed=20240602):
    """Trades or quotes of one day at any time of it, of any symbol, as Parquet in order of time: a walk of prices."""
    def make(path):
        import numpy as np
        import pyarrow as pa
        import pyarrow.parquet as pq

        chance = np.random.default_rng([seed, len(table)])
        start = np.datetime64("2024-01-01T00:00:00", "us").astype("int64")
        times = np.sort(chance.integers(0, 86_400_000_000, rows)) + start
        words = pa.array([f"S{i:03d}" for i in range(symbols)])
        price = 100 + np.cumsum(chance.normal(0, 0.001, rows))
        columns = {"ts": pa.array(times, pa.timestamp("us")), "symbol": pa.DictionaryArray.from_arrays(pa.array(chance.integers(0, symbols, rows).astype(np.int32)), words)}
        if table == "quotes":
            columns |= {"bid": pa.array(np.round(price - 0.01, 4)), "ask": pa.array(np.round(price + 0.01, 4))}
        else:
            columns |= {"price": pa.array(np.round(price, 4)), "amount": pa.array(chance.integers(1, 1000, rows).astype(float))}
        pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=1_000_000, use_dictionary=["symbol"])

    return made(folder() / f"{table}-{rows}-{symbols}-{seed}.parquet", make)
