"""Standard error without a reader, closed or not writable: logging neither blocks nor stops the server."""

import os
import re
import socket
import subprocess

import pytest
from server import Server, eventually


class Unread(Server):
    """A server whose standard error is the pipe or file in `stream`."""

    def __init__(self, folder, stream):
        super().__init__(folder)
        self.stream = stream

    def spawn(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=self.stream, stdin=subprocess.DEVNULL)
        return self

    def log_tail(self, size=0):
        return "(standard error is not read)"


def lines_dropped(server):
    with socket.create_connection(("127.0.0.1", server.health_port), timeout=10) as s:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    return int(float(re.search(r"^tidalite_log_lines_dropped_total (\S+)$", text, re.M)[1]))


def log_much(server, lines):
    """Each refused request of line protocol is one log line."""
    connection = server.connection()
    for n in range(lines):
        connection.request("POST", "/write", b"refused" + b"x" * 200 + b" %d\n" % n)
        answer = connection.getresponse()
        assert answer.read() and answer.status == 400
    connection.close()


def streams():
    """Functions that create standard error streams that accept no data."""
    def closed():
        read, write = os.pipe()
        os.close(read)
        return write

    yield pytest.param(lambda: os.pipe()[1], id="full pipe")
    yield pytest.param(closed, id="closed pipe")
    if os.path.exists("/dev/full"):
        yield pytest.param(lambda: os.open("/dev/full", os.O_WRONLY), id="full disk")


@pytest.mark.parametrize("make", list(streams()))
def test_log_lines_are_dropped_and_counted(tmp_path, make):
    stream = make()
    server = Unread(tmp_path, stream).start()
    try:
        log_much(server, 3000)
        eventually(lambda: lines_dropped(server) > 0, 30, "a dropped line")
        assert server.request("POST", "/write", b"t v=1i\n")[0] == 204
        assert server.exec("select count(*) from t")["dataset"] == [[1]]
        with pytest.raises(Exception):
            server.exec("select nothing from nowhere")
        assert server.stop() == 0
    finally:
        if server.process is not None:
            server.kill()
        os.close(stream)
