"""Both ways to a server, encrypted."""

import pytest
import tidalite
import trustme
from server import Server, eventually
from tidalite import Sender, TimestampNanos


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    (folder / "chain.pem").write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
    made.private_key_pem.write_to_path(str(folder / "key.pem"))
    env = {"TIDALITE_TLS_CERTIFICATE": str(folder / "chain.pem"), "TIDALITE_TLS_KEY": str(folder / "key.pem")}
    server = Server(folder / "server", env=env, authority=str(folder / "ca.pem")).start()
    yield server
    server.stop()


def test_connections(encrypted):
    with tidalite.connect(f"tidalites://localhost:{encrypted.http_port}", tls_ca=encrypted.authority) as db:
        assert db.write("t", {"n": [1, 2, 3]}) == 3
        assert db.sql("select sum(n) from t").fetchall() == [(6,)]
    with pytest.raises(tidalite.OperationalError, match="certificate"):
        tidalite.connect(f"tidalites://localhost:{encrypted.http_port}").sql("select 1")
    with tidalite.connect(f"tidalites://127.0.0.1:{encrypted.http_port}", tls_verify=False) as db:
        assert db.sql("select 1").fetchall() == [(1,)]
    with pytest.raises(tidalite.Error):
        tidalite.connect(f"tidalite://127.0.0.1:{encrypted.http_port}").sql("select 1")


@pytest.mark.parametrize("protocol,trust", [("https", "tls_roots"), ("tcps", "tls_roots"), ("https", None), ("tcps", None)])
def test_senders(encrypted, protocol, trust):
    port = encrypted.http_port if protocol == "https" else encrypted.ilp_port
    how = f"tls_roots={encrypted.authority};" if trust else "tls_verify=unsafe_off;"
    table = f"s_{protocol}_{trust}".lower()
    with Sender.from_conf(f"{protocol}::addr=localhost:{port};{how}") as sender:
        sender.row(table, columns={"v": 1.5}, at=TimestampNanos(10**18))
    with tidalite.connect(f"tidalites://localhost:{encrypted.http_port}", tls_ca=encrypted.authority) as db:
        eventually(lambda: table in db.tables(), 20, table)
        eventually(lambda: db.sql(f"select v from {table}").fetchall() == [(1.5,)], 20, "the row")
