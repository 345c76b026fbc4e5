"""Backups in an object store: a real S3 API (moto), a process that dies half-way, an object that is not what it was."""

import hashlib
import json
import socket
import subprocess
import threading
import uuid

import boto3
import psycopg
import pytest
from moto.server import ThreadedMotoServer
from server import Server, SqlError, binary, eventually
from test_backup import numbers, tidalite

KEYS = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


class Store:
    """A bucket, and the variables that lead to it."""

    def __init__(self, port, bucket):
        self.bucket, endpoint = bucket, f"http://127.0.0.1:{port}"
        self.env = {**KEYS, "AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true"}
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="me", aws_secret_access_key="secret")
        self.url = f"s3://{bucket}/db/one"

    def names(self, prefix=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=f"db/one/{prefix}")
        return [item["Key"] for page in pages for item in page.get("Contents", [])]


@pytest.fixture(scope="module")
def moto():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server.get_host_and_port()[1]
    server.stop()


@pytest.fixture
def store(moto, monkeypatch):
    store = Store(moto, f"b{uuid.uuid4().hex}")
    store.client.create_bucket(Bucket=store.bucket)
    for name, value in store.env.items():
        monkeypatch.setenv(name, value)
    return store


def lines(count, start=0, table="a"):
    # Three days, some rows late.
    at = lambda n: (1704067200 + (n * 7919) % 259200) * 10**9 + n
    return "".join(f"{table},s=s{n % 50} x={n}i,y={n}.5,text=\"row {n * 7919}\" {at(n)}\n" for n in range(start, start + count))


def test_backups_are_incremental_and_come_back(servers, store, tmp_path):
    server = servers(env=store.env).start()
    server.write_ok(lines(30_000))
    server.exec("ALTER TABLE a SEAL")
    first = server.rows(f"BACKUP DATABASE TO '{store.url}'")[0]
    server.write_ok(lines(50, 30_000, "b"))
    server.write_ok(lines(50, 30_050, "b"))
    # Asked by the command line, the server makes it.
    said = tidalite("backup", "--url", f"http://127.0.0.1:{server.http_port}", "--to", store.url)
    assert "shared with earlier backups" in said
    listed = json.loads(tidalite("backups", store.url, "--json"))
    assert [b["name"] for b in listed][0] == first[0] and len(listed) == 2
    assert {name.split("/")[2] for name in store.names()} == {"backups", "log", "manifests", "rows", "segments", "symbols"}
    segments = len(store.names("segments"))
    server.exec("ALTER TABLE b SEAL")
    second = server.rows(f"BACKUP DATABASE TO '{store.url}/'")[0]
    assert (second[4] > 0, len(store.names("segments")) > segments) == (True, True), "the segments of a are shared"
    server.stop()
    for at, rows in [(first[0], {"a": 30_000}), (second[0], {"a": 30_000, "b": 100}), (listed[1]["txn"] - 1, {"a": 30_000, "b": 50})]:
        data = tmp_path / f"restored-{at}" / "data"
        tidalite("restore", "--from", store.url, "--at", at, "--data", data)
        assert "no problems" in tidalite("check", "--data", data)
        again = Server(data.parent).start()
        assert {table: again.count(table) for table in rows} == rows
        assert numbers(again, "a") == list(range(30_000))
        again.stop()


def test_a_large_segment_goes_in_parts(servers, store, tmp_path):
    server = servers(env=store.env).start()
    noise = lambda n: hashlib.sha256(b"%d" % n).hexdigest()
    for start in range(0, 400_000, 100_000):
        server.write_ok("".join(f'a x={n}i,text="{noise(n)}" {n}\n' for n in range(start, start + 100_000)))
    server.exec("ALTER TABLE a SEAL")
    server.rows(f"BACKUP DATABASE TO '{store.url}'")
    sizes = [store.client.head_object(Bucket=store.bucket, Key=name) for name in store.names("segments")]
    assert any(s["ContentLength"] > 8 << 20 and "-" in s["ETag"] for s in sizes), "one was put in parts"
    tidalite("restore", "--from", store.url, "--data", tmp_path / "new" / "data")
    assert "no problems" in tidalite("check", "--data", tmp_path / "new" / "data")
    assert "400000" in tidalite("sql", "--data", tmp_path / "new" / "data", "--format", "csv", "select count(distinct text) from a")


def test_a_process_that_dies_leaves_no_backup_and_the_next_goes_on(servers, store, tmp_path):
    server = servers(env=store.env).start()
    for n in range(150):
        server.write_ok(lines(200, table=f"t{n}"))
    server.exec("ALTER TABLE t0 SEAL")
    eventually(lambda: all(row[0] == 0 for row in server.rows('select "stagedRows" from table_metrics()')), 60, "segments of every table")

    def back_up():
        try:
            server.rows(f"BACKUP DATABASE TO '{store.url}'")
        except (OSError, ValueError, SqlError):
            pass

    asking = threading.Thread(target=back_up)
    asking.start()
    eventually(lambda: len(store.names("segments")) > 5, 30, "the first segments")
    server.kill()
    asking.join(30)
    assert store.names("backups") == [], "it was killed too late to show anything"
    left = len(store.names("segments"))
    server.start()
    row = server.rows(f"BACKUP DATABASE TO '{store.url}'")[0]
    assert row[2] > 0 and len(store.names("segments")) >= left
    assert len(store.names("backups")) == 1
    server.stop()
    data = tmp_path / "new" / "data"
    tidalite("restore", "--from", store.url, "--data", data)
    again = Server(data.parent).start()
    assert all(again.count(f"t{n}") == 200 for n in range(150))
    again.stop()


def test_a_damaged_object_is_found_and_named(servers, store, tmp_path):
    server = servers(env=store.env).start()
    server.write_ok(lines(5_000))
    server.exec("ALTER TABLE a SEAL")
    server.rows(f"BACKUP DATABASE TO '{store.url}'")
    name = store.names("segments")[0]
    body = bytearray(store.client.get_object(Bucket=store.bucket, Key=name)["Body"].read())
    body[len(body) // 2] ^= 1
    store.client.put_object(Bucket=store.bucket, Key=name, Body=bytes(body))
    done = subprocess.run([str(binary()), "restore", "--from", store.url, "--data", str(tmp_path / "new")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert name.removeprefix("db/one/") in done.stderr and "does not match its checksum" in done.stderr
    store.client.delete_object(Bucket=store.bucket, Key=name)
    done = subprocess.run([str(binary()), "restore", "--from", store.url, "--data", str(tmp_path / "newer")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and f"could not open {store.url}/{name.removeprefix('db/one/')}" in done.stderr


def test_errors_say_where_and_why(servers, store):
    server = servers(env=store.env).start()
    server.write_ok(lines(10))
    refused = {
        "s3://nobody-has-this/x": "s3://nobody-has-this/x",
        "s3://": "s3:// names no bucket",
        "ftp://host/x": "ftp:// is no destination that this build can reach",
    }
    for url, reason in refused.items():
        with pytest.raises(SqlError) as error:
            server.rows(f"BACKUP DATABASE TO '{url}'")
        assert reason in error.value.answer["error"]
    store.client.put_object(Bucket=store.bucket, Key="db/one/letter.txt", Body=b"mine")
    with pytest.raises(SqlError, match="has files in it that are no backups"):
        server.rows(f"BACKUP DATABASE TO '{store.url}'")


def test_a_store_that_does_not_answer_can_be_given_up(servers):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        env = {**KEYS, "AWS_ENDPOINT": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"}
        server = servers(env=env).start()
        server.write_ok(lines(10))
        with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="u", dbname="d", autocommit=True) as connection:
            timer = threading.Timer(0.5, connection.cancel_safe)
            timer.start()
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute("BACKUP DATABASE TO 's3://bucket/x'")
            timer.join()
        assert server.value("select count(*) from a") == 10
