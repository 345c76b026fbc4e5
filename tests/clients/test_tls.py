"""TLS on every port, with the clients people use, and what comes of those who do not encrypt, wait, or trust nobody."""

import asyncio
import datetime as dt
import os
import signal
import socket
import ssl
import subprocess
import threading

import asyncpg
import psycopg
import pytest
import requests
import trustme
from questdb.ingress import IngressError, Sender, TimestampNanos
from server import binary, eventually

WHEN = TimestampNanos.from_datetime(dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc))


class Pki:
    """An authority and files of certificates by it."""

    def __init__(self, folder):
        self.folder, self.ca = folder, trustme.CA()
        self.authority = str(folder / "ca.pem")
        self.ca.cert_pem.write_to_path(self.authority)
        self.chain, self.key = str(folder / "chain.pem"), str(folder / "key.pem")
        self.issue()

    def issue(self):
        made = self.ca.issue_cert("localhost", "127.0.0.1")
        with open(self.chain, "wb") as chain:
            chain.writelines(part.bytes() for part in made.cert_chain_pems)
        made.private_key_pem.write_to_path(self.key)

    def env(self, **more):
        return {"TIDALITE_TLS_CERTIFICATE": self.chain, "TIDALITE_TLS_KEY": self.key, **more}


@pytest.fixture
def pki(tmp_path):
    return Pki(tmp_path)


@pytest.fixture
def encrypted(servers, pki):
    return servers(env=pki.env(), authority=pki.authority).start()


def logged(server, text):
    eventually(lambda: text in server.log.read_text(), 10, f"{text!r} in the log")


def test_https_answers_and_http_is_told_to_use_it(encrypted, pki):
    url = f"https://localhost:{encrypted.http_port}"
    answer = requests.get(f"{url}/exec", {"query": "select 1 + 1 as two"}, verify=pki.authority, timeout=30)
    assert answer.json()["dataset"] == [[2]]
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{url}/ping", timeout=30)
    plain = requests.get(f"http://localhost:{encrypted.http_port}/ping", timeout=30)
    assert (plain.status_code, "https://" in plain.text) == (400, True)
    logged(encrypted, "it is not encrypted, and this port speaks TLS only")


def test_many_rows_cross_an_encrypted_connection(encrypted):
    lines = "".join(f"t,s=s{n % 7} v={n}i {n}\n" for n in range(200_000))
    encrypted.write_ok(lines)
    assert encrypted.value("select count(*) from t") == 200_000
    assert encrypted.export("select v from t").count(b"\n") == 200_001


@pytest.mark.parametrize("protocol", ["https", "tcps"])
def test_the_official_client_sends(encrypted, pki, protocol):
    port = encrypted.http_port if protocol == "https" else encrypted.ilp_port
    address = f"{protocol}::addr=localhost:{port};tls_roots={pki.authority};"
    with Sender.from_conf(address) as sender:
        for n in range(10_000):
            sender.row("t", symbols={"s": f"s{n % 3}"}, columns={"v": n}, at=TimestampNanos(WHEN.value + n))
    encrypted.wait_count("t", 10_000)
    with pytest.raises(IngressError), Sender.from_conf(f"{protocol}::addr=localhost:{port};retry_timeout=0;") as sender:
        sender.row("t", columns={"v": 1}, at=WHEN)


def test_all_lines_come_of_a_sender_that_never_reads(encrypted, pki):
    """Whoever closes a connection with bytes in it that it has not read, as session tickets, resets it, and what the
    server has not received by then is lost."""
    context = ssl.create_default_context(cafile=pki.authority)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    plain.connect(("127.0.0.1", encrypted.ilp_port))
    plain.settimeout(30)
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(b"t v=0i 0\n")
        encrypted.wait_count("t", 1)
        # More than fits in the window of a server that does not read, less than in the buffer of the sender.
        os.kill(encrypted.pid(), signal.SIGSTOP)
        connection.sendall(b"".join(b"t v=%di %d\n" % (n, n) for n in range(1, 20_000)))
    os.kill(encrypted.pid(), signal.SIGCONT)
    encrypted.wait_count("t", 20_000)


def test_lines_in_plain_text_are_refused(encrypted):
    with encrypted.tcp() as connection:
        connection.sendall(b"t v=1i 1\n")
        try:
            assert connection.recv(1) == b""
        except ConnectionResetError:
            pass
    logged(encrypted, "it is not encrypted, and this port speaks TLS only")
    assert not encrypted.has_table("t")


def test_a_port_may_stay_plain(servers, pki):
    server = servers(env=pki.env(TIDALITE_ILP_TLS="false"), authority=pki.authority).start()
    with server.tcp() as connection:
        connection.sendall(b"t v=1i 1\n")
    server.wait_count("t", 1)


def parameters(server, pki, **more):
    return dict(host="localhost", port=server.pg_port, user="u", dbname="d", sslmode="verify-full", sslrootcert=pki.authority, **more)


@pytest.mark.parametrize("negotiation", ["postgres", "direct"])
def test_psycopg_verifies_and_asks(encrypted, pki, negotiation):
    with psycopg.connect(**parameters(encrypted, pki, sslnegotiation=negotiation)) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT count(*) FROM generate_series(1, 100000)").fetchone() == (100000,)
        rows = connection.execute("SELECT value FROM generate_series(1, 100000) AS value").fetchall()
        assert rows[-1] == (100000,)


def test_who_does_not_encrypt_is_told(encrypted, pki):
    with pytest.raises(psycopg.OperationalError, match="connection is not encrypted"):
        psycopg.connect(**{**parameters(encrypted, pki), "sslmode": "disable"})
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        psycopg.connect(host="localhost", port=encrypted.pg_port, user="u", dbname="d", sslmode="verify-full", sslrootcert="system")
    logged(encrypted, "PostgreSQL: connection closed: it is not encrypted")


def test_a_password_is_proved_within_tls(servers, pki):
    server = servers(env=pki.env(TIDALITE_PG_USER="me", TIDALITE_PG_PASSWORD="secret"), authority=pki.authority).start()
    with psycopg.connect(**{**parameters(server, pki), "user": "me", "password": "secret"}) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**{**parameters(server, pki), "user": "me", "password": "wrong"})


def test_a_statement_is_cancelled_over_tls(encrypted, pki):
    with psycopg.connect(**parameters(encrypted, pki)) as connection:
        timer = threading.Timer(0.3, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT count(*) FROM generate_series(1, 1000000) a(value), generate_series(1, 1000000) b(value) WHERE a.value * b.value % 7 = 8")
        timer.join()


def test_asyncpg_fetches(encrypted, pki):
    async def run():
        context = ssl.create_default_context(cafile=pki.authority)
        connection = await asyncpg.connect(host="localhost", port=encrypted.pg_port, user="u", database="d", ssl=context)
        assert await connection.fetchval("SELECT $1::long + 1", 41) == 42
        await connection.close()

    asyncio.run(run())


def test_the_shell_speaks_https(encrypted, pki):
    url = f"https://localhost:{encrypted.http_port}"
    ask = lambda *more: subprocess.run([str(binary()), "sql", "--url", url, *more, "select 7 as seven"], capture_output=True, text=True, timeout=60)
    done = ask("--ca-file", pki.authority, "--format", "csv")
    assert (done.returncode, "7" in done.stdout) == (0, True), done.stderr
    assert "certificate" in ask().stderr
    missing = ask("--ca-file", "/nowhere/ca.pem")
    assert missing.returncode == 1 and "--ca-file /nowhere/ca.pem: could not be read" in missing.stderr


def test_files_that_do_not_fit_stop_the_start(servers, pki, tmp_path):
    other = trustme.CA().issue_cert("localhost")
    key = tmp_path / "other.pem"
    other.private_key_pem.write_to_path(key)
    for settings, reason in [
        (pki.env(TIDALITE_TLS_KEY=str(key)), f"{key}: the private key is not that of the certificate in {pki.chain}"),
        (pki.env(TIDALITE_TLS_CERTIFICATE="/nowhere/c.pem"), "/nowhere/c.pem: could not be read"),
        (pki.env(TIDALITE_TLS_KEY=pki.chain), f"{pki.chain}: there is no private key in it"),
    ]:
        server = servers(env=settings).spawn()
        assert server.process.wait(30) == 1
        assert reason in server.log_tail(), server.log_tail()


def test_a_silent_handshake_holds_nothing_and_ends(encrypted):
    ports = [encrypted.http_port, encrypted.ilp_port]
    # Those who say nothing, and those who begin and stop.
    silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for port in ports for _ in range(40)]
    for connection in silent[::2]:
        connection.sendall(b"\x16\x03\x01")
    asked = socket.create_connection(("127.0.0.1", encrypted.pg_port), timeout=30)
    asked.sendall(bytes([0, 0, 0, 8, 4, 0xD2, 0x16, 0x2F]))
    assert asked.recv(1) == b"S"
    assert encrypted.value("select 1") == 1
    for connection in [*silent, asked]:
        assert connection.recv(100) == b""
        connection.close()
    logged(encrypted, "the handshake took too long")


def serial(server, pki):
    context = ssl.create_default_context(cafile=pki.authority)
    with socket.create_connection(("localhost", server.http_port), timeout=30) as plain, context.wrap_socket(plain, server_hostname="localhost") as connection:
        return connection.getpeercert()["serialNumber"]


def test_a_certificate_is_read_again_on_sighup(encrypted, pki):
    first = serial(encrypted, pki)
    pki.issue()
    os.kill(encrypted.pid(), signal.SIGHUP)
    eventually(lambda: serial(encrypted, pki) != first, 10, "the new certificate")
    second = serial(encrypted, pki)
    with open(pki.key, "w") as key:
        key.write("none")
    os.kill(encrypted.pid(), signal.SIGHUP)
    logged(encrypted, "could not read the certificate again; the old one stays")
    assert serial(encrypted, pki) == second
