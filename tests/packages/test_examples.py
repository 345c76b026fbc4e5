"""The files of examples/: syntax, addresses, the requests that the programs send with them, the queries of Grafana.

The programs are not installed. The requests are those that their outputs send, by their documentation and sources: the path and
parameters of InfluxDB 2's API, `Authorization: Token`, and a line as the output writes it.
"""

import gzip
import json
import re
import tomllib
from datetime import datetime

import psycopg
import pytest
import yaml
from conftest import ROOT
from server import Server

EXAMPLES = ROOT / "examples"
TOKEN = "examples-token"


def load(name):
    text = (EXAMPLES / name).read_text()
    return tomllib.loads(text) if name.endswith(".conf") else yaml.safe_load(text)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    credentials = {"TIDALITE_HTTP_TOKENS": TOKEN, "TIDALITE_HTTP_USER": "admin", "TIDALITE_HTTP_PASSWORD": "secret"}
    running = Server(tmp_path_factory.mktemp("examples"), env=credentials).start()
    yield running
    running.stop()


def select(server, statement):
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="admin", password="secret", dbname="tidalite", autocommit=True) as connection:
        return connection.execute(statement).fetchall()


def write(server, settings, line, token, parameters="&precision=ns", compress=False):
    path = f"/api/v2/write?org={settings['org']}&bucket={settings['bucket']}{parameters}"
    headers = {"Authorization": f"Token {token}", "Content-Type": "text/plain; charset=utf-8"}
    body = line.encode()
    if compress:
        headers["Content-Encoding"], body = "gzip", gzip.compress(body)
    status, _, answer = server.request("POST", path, body, headers)
    assert status == 204, answer
    assert server.request("POST", path, body, {**headers, "Authorization": "Token wrong"})[0] == 401


def token_of(text):
    """The token that the program puts in the place of the variable."""
    assert re.fullmatch(r"\$\{(env:)?TIDALITE_TOKEN\}", text)
    return TOKEN


def test_telegraf(server):
    output = load("telegraf/telegraf.conf")["outputs"]["influxdb_v2"][0]
    assert (output["urls"], output["content_encoding"]) == (["http://127.0.0.1:9000"], "gzip")
    settings = {"org": output["organization"], "bucket": output["bucket"]}
    line = "swap,host=h1 free=12i,used_percent=1.5 1700000000000000000\n"
    write(server, settings, line, token_of(output["token"]), parameters="", compress=True)
    assert select(server, "SELECT host, free, used_percent, timestamp FROM swap") == [("h1", 12, 1.5, datetime(2023, 11, 14, 22, 13, 20))]


def test_vector(server):
    config = load("vector/vector.yaml")
    for name, line in {
        "tidalite_metrics": "host.memory_free_bytes,host=h1,metric_type=gauge value=5 1700000000000000000\n",
        "tidalite_logs": 'logs,_SYSTEMD_UNIT=a.service,host=h1,metric_type=logs PRIORITY="6",message="a \\"text\\"" 1700000000000000000\n',
    }.items():
        sink = config["sinks"][name]
        assert sink["endpoint"] == "http://127.0.0.1:9000" and set(sink["inputs"]) <= set(config["sources"])
        write(server, sink, line, token_of(sink["token"]))
    assert server.request("GET", "/ping")[0] == 204, "the health check of the sink"
    assert select(server, 'SELECT host, value FROM "host.memory_free_bytes"') == [("h1", 5.0)]
    assert select(server, 'SELECT "_SYSTEMD_UNIT", message FROM logs') == [("a.service", 'a "text"')]


def test_fluent_bit(server):
    config = load("fluent-bit/fluent-bit.yaml")["pipeline"]
    output = config["outputs"][0]
    assert (output["host"], output["port"]) == ("127.0.0.1", 9000)
    write(server, output, "cpu.local,_seq=1 cpu_p=0.5,user_p=0.25 1700000000000000000\n", token_of(output["http_token"]))
    assert config["inputs"][0]["tag"] == "cpu.local"
    assert select(server, 'SELECT "_seq", cpu_p, user_p FROM "cpu.local"') == [("1", 0.5, 0.25)]


def test_opentelemetry_collector(server):
    config = load("opentelemetry/collector.yaml")
    exporter = config["exporters"]["influxdb"]
    assert exporter["endpoint"] == "http://127.0.0.1:9000"
    for pipeline in config["service"]["pipelines"].values():
        assert all(name in config[kind] for kind in ("receivers", "processors", "exporters") for name in pipeline[kind])
    lines = "http_requests_total,code=200,method=post counter=1027 1700000000000000000\n" 'spans,span_id=d5270e78d85f570f name="okey",duration_nano=5i 1700000000000000000\n'
    write(server, exporter, lines, token_of(exporter["token"]))
    assert select(server, "SELECT code, counter FROM http_requests_total") == [("200", 1027.0)]
    assert select(server, "SELECT span_id, name, duration_nano FROM spans") == [("d5270e78d85f570f", "okey", 5)]


def with_macros(sql):
    """The statement after Grafana's PostgreSQL data source has replaced its macros."""
    sql = sql.replace("$__interval", "10s")
    sql = re.sub(r"\$__timeGroupAlias\((\w+), (\d+)s\)", r'floor(extract(epoch from \1)/\2)*\2 AS "time"', sql)
    sql = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 BETWEEN '2023-11-14T22:00:00Z' AND '2023-11-14T23:00:00Z'", sql)
    assert "$" not in sql
    return sql


def test_grafana(server):
    source = load("grafana/provisioning/datasources/tidalite.yaml")["datasources"][0]
    assert (source["url"], source["jsonData"]["database"], source["jsonData"]["postgresVersion"]) == ("$TIDALITE_PG", "tidalite", 1400)
    dashboard = json.loads((EXAMPLES / "grafana/dashboards/machines.json").read_text())
    lines = (
        "cpu,cpu=cpu-total,host=h1 usage_idle=90 1700000000000000000\n"
        "cpu,cpu=cpu-total,host=h1 usage_idle=80 1700000001000000000\n"
        "cpu,cpu=cpu0,host=h1 usage_idle=10 1700000001000000000\n"
        "mem,host=h1 used_percent=40 1700000000000000000\n"
        "disk,host=h1,path=/ used_percent=70 1700000000000000000\n"
        "disk,host=h1,path=/ used_percent=71 1700000001000000000\n"
    )
    write(server, {"org": "o", "bucket": "b"}, lines, TOKEN)
    answers = []
    for panel in dashboard["panels"]:
        assert panel["datasource"]["uid"] == source["uid"]
        answers += [select(server, with_macros(target["rawSql"])) for target in panel["targets"]]
    assert answers == [[(1700000000.0, "h1", 15.0)], [(1700000000.0, "h1", 40.0)], [("h1", "/", 71.0)]]
