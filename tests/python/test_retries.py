"""Answers that are lost on their way: what was asked is asked again, and done once."""

import socket
import threading

import polars as pl
import pytest
import tidalite


class Lossy:
    """Between a client and a server: takes requests there, and loses the first so many answers."""

    def __init__(self, port):
        self.upstream, self.lose, self.lost = port, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.upstream))
            threading.Thread(target=self.forward, args=(client, server), daemon=True).start()
            threading.Thread(target=self.back, args=(server, client), daemon=True).start()

    def forward(self, client, server):
        try:
            while piece := client.recv(1 << 16):
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def back(self, server, client):
        try:
            while piece := server.recv(1 << 16):
                if self.lose:
                    self.lose -= 1
                    self.lost += 1
                    break
                client.sendall(piece)
        except OSError:
            pass
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()


@pytest.fixture
def lossy(server):
    between = Lossy(server.http_port)
    yield between
    between.listener.close()


@pytest.mark.parametrize("is_kept", [False, True], ids=["new", "kept"])
def test_rows_are_written_once(lossy, remote, table, is_kept):
    with tidalite.connect(f"tidalite://127.0.0.1:{lossy.port}") as db:
        if is_kept:
            db.sql("select 1").fetchall()
        lossy.lose = 1
        assert db.write(table, pl.DataFrame({"n": range(1000)})) == 1000
        lossy.lose = 1
        assert db.sql(f"insert into {table} values (5)").rowcount == 1
        assert lossy.lost == 2
    assert remote.sql(f"select count(*) from {table}").fetchall() == [(1001,)]


def test_a_sender_writes_once(lossy, remote, table):
    with tidalite.Sender.from_conf(f"http::addr=127.0.0.1:{lossy.port};protocol_version=2;auto_flush=off;") as sender:
        for n in range(3):
            for _ in range(100):
                sender.row(table, columns={"n": n}, at=tidalite.TimestampNanos(n))
            lossy.lose = 2
            sender.flush()
    assert lossy.lost == 6
    assert remote.sql(f"select n, count(*) from {table} group by n order by n").fetchall() == [(0, 100), (1, 100), (2, 100)]


def test_what_has_no_key_is_not_sent_again(lossy, server):
    from tidalite._http import Endpoint

    endpoint = Endpoint("127.0.0.1", lossy.port)
    lossy.lose = 1
    with pytest.raises(OSError):
        endpoint.request("POST", "/exec?query=select+1", b"")
    assert lossy.lost == 1


def test_pieces_are_sent_whole_again(lossy, remote, table):
    """A body in pieces is there again for the second try."""
    frame = pl.DataFrame({"n": range(200_000), "ts": pl.Series(range(200_000)).cast(pl.Datetime("us"))})
    with tidalite.Sender.from_conf(f"http::addr=127.0.0.1:{lossy.port};protocol_version=2;threads=4;auto_flush_rows=100000;") as sender:
        lossy.lose = 1
        sender.dataframe(frame, table_name=table, at="ts")
    assert lossy.lost == 1
    assert remote.sql(f"select count(*), sum(n) from {table}").fetchall() == [(200_000, 200_000 * 199_999 // 2)]


def test_a_connection_that_the_server_closed_is_not_used(server):
    from tidalite._http import Endpoint

    endpoint = Endpoint("127.0.0.1", server.http_port)
    connection, response = endpoint.request("GET", "/ping")
    response.read()
    endpoint.release(connection)
    # The other side has gone.
    connection.sock.shutdown(socket.SHUT_RDWR)
    again, response = endpoint.request("POST", "/exec?query=select+1&fmt=arrow", b"")
    assert again is not connection and response.status == 200
    response.read()
    endpoint.close()
