"""Line protocol of the Time Series Benchmark Suite as one Parquet file a measurement, for systems that read no lines.

In: a file of lines. Out: {measurement: path}; columns are the tags, the fields, then the timestamp, as in a table that the
lines would have made. A tag or field that a line lacks is NULL. DuckDB takes the text apart; it is no part of a clock.
"""

from collections import namedtuple

from . import data


Shape = namedtuple("Shape", "tags fields whole")


def tables(path, wanted):
    """{measurement: path of its Parquet file}, of those that are wanted and there."""
    found = {}
    for name, shape in shapes(path).items():
        if name in wanted:
            target = data.folder() / f"{path.stem}-{name}.parquet"
            found[name] = data.made(target, lambda unfinished, n=name, s=shape: write(path, unfinished, n, s))
    return found


def shapes(path, lines=200_000):
    """{measurement: its tags, {field: whether all its values are integers}, whether no line lacks any}, from the first lines."""
    found = {}
    with open(path) as file:
        for _, line in zip(range(lines), file):
            head, fields, _ = line.rsplit(" ", 2)
            name, *tags = head.split(",")
            tags, fields = [tag.split("=", 1)[0] for tag in tags], [field.split("=", 1) for field in fields.split(",")]
            known = found.get(name) or Shape([], {}, True)
            first = name not in found
            whole = known.whole and (first or (tags == known.tags and [key for key, _ in fields] == list(known.fields)))
            known.tags.extend(tag for tag in tags if tag not in known.tags)
            for key, value in fields:
                known.fields[key] = known.fields.get(key, True) and value.endswith("i")
            found[name] = Shape(known.tags, known.fields, whole)
    return found


def write(path, target, name, shape):
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    tags, keys = shape.tags, list(shape.fields)

    def picked(text, key):
        if shape.whole:
            # Where it always stands; another line than the first ones is an error, not a NULL.
            at = tags.index(key) + 2 if text == "head" else keys.index(key) + 1
            part = f"{text}_parts[{at}]"
            return f"CASE WHEN starts_with({part}, '{key}=') THEN substr({part}, {len(key) + 2}) ELSE error('a line without {key}') END"
        return f"nullif(regexp_extract({text}, '(?:^|,){key}=([^,]*)', 1), '')"

    def field(key):
        return f"CAST(rtrim({picked('fields', key)}, 'i') AS {'BIGINT' if shape.fields[key] else 'DOUBLE'}) AS {key}"

    columns = [*(f"{picked('head', key)} AS {key}" for key in tags), *map(field, keys)]
    source = f"read_csv('{path}', delim = ' ', header = false, quote = '', columns = {{'head': 'VARCHAR', 'fields': 'VARCHAR', 'ns': 'BIGINT'}})"
    parts = "string_split(head, ',') AS head_parts, string_split(fields, ',') AS fields_parts" if shape.whole else "1 AS one"
    source = f"(SELECT head, fields, ns, {parts} FROM {source} WHERE head LIKE '{name},%')"
    connection = duckdb.connect()
    connection.execute("SET threads TO 2")
    reader = connection.sql(f"SELECT {', '.join(columns)}, make_timestamp(ns // 1000) AS timestamp FROM {source}").to_arrow_reader(1_000_000)
    schema = pa.schema([pa.field(f.name, pa.dictionary(pa.int32(), pa.string()) if f.name in tags else f.type) for f in reader.schema])
    with pq.ParquetWriter(target, schema, compression="zstd", compression_level=1, use_dictionary=list(tags)) as writer:
        for batch in reader:
            table = pa.Table.from_batches([batch])
            arrays = [table[f.name].dictionary_encode() if f.name in tags else table[f.name] for f in schema]
            writer.write_table(pa.table([a.cast(f.type) if f.name in tags else a for a, f in zip(arrays, schema)], schema=schema), row_group_size=1_000_000)
