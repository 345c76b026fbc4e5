"""Line protocol of the Time Series Benchmark Suite as one Parquet file a measurement, for systems that read no lines.

In: a file of lines. Out: {measurement: path}; columns are the tags, the fields, then the timestamp, as in a table that the
lines would have made. A tag or field that a line lacks is NULL. DuckDB takes the text apart; it is no part of a clock.
"""

from . import data


def tables(path):
    """{measurement: path of its Parquet file}."""
    found = {}
    for name, (tags, fields) in shapes(path).items():
        target = data.folder() / f"{path.stem}-{name}.parquet"
        found[name] = data.made(target, lambda unfinished, n=name, t=tags, f=fields: write(path, unfinished, n, t, f))
    return found


def shapes(path, lines=200_000):
    """{measurement: ([tags], {field: whether all its values are integers})}, from the first lines."""
    found = {}
    with open(path) as file:
        for _, line in zip(range(lines), file):
            head, fields, _ = line.rsplit(" ", 2)
            name, *tags = head.split(",")
            known_tags, known_fields = found.setdefault(name, ([], {}))
            for key in (tag.split("=", 1)[0] for tag in tags):
                if key not in known_tags:
                    known_tags.append(key)
            for key, value in (field.split("=", 1) for field in fields.split(",")):
                known_fields[key] = known_fields.get(key, True) and value.endswith("i")
    return found


def write(path, target, name, tags, fields):
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    def picked(text, key):
        return f"nullif(regexp_extract({text}, '(?:^|,){key}=([^,]*)', 1), '')"

    def field(key, whole):
        value = picked("fields", key)
        return f"CAST(rtrim({value}, 'i') AS BIGINT)" if whole else f"CAST(rtrim({value}, 'i') AS DOUBLE)"

    columns = [*(f"{picked('head', key)} AS {key}" for key in tags), *(f"{field(key, whole)} AS {key}" for key, whole in fields.items())]
    source = f"read_csv('{path}', delim = ' ', header = false, quote = '', columns = {{'head': 'VARCHAR', 'fields': 'VARCHAR', 'ns': 'BIGINT'}})"
    connection = duckdb.connect()
    connection.execute("SET threads TO 2")
    reader = connection.sql(f"SELECT {', '.join(columns)}, make_timestamp(ns // 1000) AS timestamp FROM {source} WHERE head LIKE '{name},%'").to_arrow_reader(1_000_000)
    schema = pa.schema([pa.field(f.name, pa.dictionary(pa.int32(), pa.string()) if f.name in tags else f.type) for f in reader.schema])
    with pq.ParquetWriter(target, schema, compression="zstd", compression_level=1, use_dictionary=list(tags)) as writer:
        for batch in reader:
            table = pa.Table.from_batches([batch])
            arrays = [table[f.name].dictionary_encode() if f.name in tags else table[f.name] for f in schema]
            writer.write_table(pa.table([a.cast(f.type) if f.name in tags else a for a, f in zip(arrays, schema)], schema=schema), row_group_size=1_000_000)
