"""Who may write: the ECDSA challenge over TCP, basic and bearer over HTTP, by the official client."""

import base64
import json

import pytest
from questdb import QuestDBError, Sender, TimestampNanos
from server import eventually

T0 = 1704067200 * 10**9
SECRET = 0x1D2C3B4A59687786958493A2B1C0DFEEFD0C1B2A39485766758493A2B1C0DFEE
OTHER = SECRET ^ 0xFF


def p256_point(secret):
    """The public key of a secret number: on the curve NIST P-256, the base point that many times."""
    p = 2**256 - 2**224 + 2**192 + 2**96 - 1
    base = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296, 0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)

    def add(a, b):
        if a is None or b is None:
            return a or b
        if a[0] == b[0]:
            if (a[1] + b[1]) % p == 0:
                return None
            slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, p)
        else:
            slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, p)
        x = (slope * slope - a[0] - b[0]) % p
        return x, (slope * (a[0] - x) - a[1]) % p

    point, double = None, base
    while secret:
        if secret & 1:
            point = add(point, double)
        double, secret = add(double, double), secret >> 1
    return point


def text(number):
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")


def tcp(server, secret, user="ada"):
    x, y = p256_point(secret)
    return Sender.from_conf(f"tcp::addr=127.0.0.1:{server.ilp_port};protocol_version=2;username={user};token={text(secret)};token_x={text(x)};token_y={text(y)};")


@pytest.fixture
def guarded(servers, tmp_path):
    keys = tmp_path / "keys"
    x, y = p256_point(SECRET)
    keys.write_text(f"# name type x y\nada ec-p-256-sha256 {text(x)} {text(y)}\n")
    return servers(env={"TIDALITE_ILP_AUTH_FILE": str(keys), "TIDALITE_HTTP_USER": "ada", "TIDALITE_HTTP_PASSWORD": "l0ve:lace", "TIDALITE_HTTP_TOKENS": "tok1,tok2"})


BASIC = {"Authorization": "Basic " + base64.b64encode(b"ada:l0ve:lace").decode()}


def count(server, table):
    status, _, body = server.request("GET", f"/exec?query=select%20count(*)%20from%20{table}", headers=BASIC)
    return json.loads(body)["dataset"][0][0] if status == 200 else -1


def test_authentication(guarded):
    server = guarded.spawn()
    eventually(lambda: server.log.exists() and server.process.poll() is None and reached(server), 60, "the server")
    with tcp(server, SECRET) as s:
        s.row("t", columns={"x": 1}, at=TimestampNanos(T0))
    eventually(lambda: count(server, "t") == 1, what="the row of a known key")
    for secret, user in ((OTHER, "ada"), (SECRET, "eve")):
        with pytest.raises(QuestDBError):
            with tcp(server, secret, user) as s:
                for k in range(100_000):
                    s.row("t", columns={"x": 2}, at=TimestampNanos(T0 + k))
                    s.flush()
    with server.tcp() as s:
        s.sendall(b"t x=3i 1\n" * 10)
        try:
            while s.recv(4096):
                pass
        except ConnectionError:
            pass
    assert count(server, "t") == 1

    for headers, allowed in ((BASIC, True), ({"Authorization": "Bearer tok2"}, True), ({}, False), ({"Authorization": "Bearer tok3"}, False),
                             ({"Authorization": "Basic " + base64.b64encode(b"ada:wrong").decode()}, False)):
        status = server.request("POST", "/write", "t x=4i 1\n", headers)[0]
        assert status == (204 if allowed else 401), headers
        assert server.request("GET", "/exec?query=select%201", headers=headers)[0] == (200 if allowed else 401), headers
    with Sender.from_conf(f"http::addr=127.0.0.1:{server.http_port};username=ada;password=l0ve:lace;") as s:
        s.row("t", columns={"x": 5}, at=TimestampNanos(T0))
    with Sender.from_conf(f"http::addr=127.0.0.1:{server.http_port};token=tok1;") as s:
        s.row("t", columns={"x": 5}, at=TimestampNanos(T0))
    with pytest.raises(QuestDBError):
        with Sender.from_conf(f"http::addr=127.0.0.1:{server.http_port};protocol_version=2;token=nope;") as s:
            s.row("t", columns={"x": 6}, at=TimestampNanos(T0))
    assert count(server, "t") == 5


def reached(server):
    try:
        return server.request("GET", "/ping", headers=BASIC)[0] == 204
    except OSError:
        return False
