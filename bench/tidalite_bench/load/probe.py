"""Latency of metadata by the kernel's packet timestamps: last byte of the request to first byte of the answer.

The generator shares its processors with the server, so a clock in the generator would also measure how long the generator waits for a
processor. Here the kernel stamps both packets (SO_TIMESTAMPING, software): the request when it is handed to the network device, the answer
when its first packet arrives there, before any process of the generator runs. On loopback both are the moment at which the packet
passes from one socket to the other. No privilege is needed. Documentation: Documentation/networking/timestamping.rst of Linux.
"""

import socket
import struct
import threading
import time

from .clients import http_answer, http_request, pg_answer, pg_query, pg_startup
from .record import SNAPSHOT_S, Record

SO_TIMESTAMPING = 37
SOF_TX_SOFTWARE, SOF_RX_SOFTWARE, SOF_SOFTWARE, SOF_OPT_ID, SOF_OPT_TSONLY = 1 << 1, 1 << 3, 1 << 4, 1 << 7, 1 << 11
TIMEOUT_S = 60
PROBE_EVERY_S = 0.25
WARM_S = 2
# Names of counts.
WITHOUT_STAMPS, SKIPPED = "metadata without stamps", "metadata probes left out"

# (name, protocol, statement or path)
PROBES = [
    ("SHOW TABLES", "http", "/exec?query=SHOW%20TABLES"),
    ("SELECT 1", "pg", "SELECT 1"),
    ("query_activity()", "http", "/exec?query=SELECT%20*%20FROM%20query_activity()"),
    ("pg_class", "pg", "SELECT c.oid, c.relname, c.relkind, n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
                       "WHERE c.relkind IN ('r', 'v') AND n.nspname = 'public' ORDER BY c.relname"),
    ("/health", "http", "/health"),
    ("SELECT 1, HTTP", "http", "/exec?query=SELECT%201"),
]


class ProbeError(Exception):
    """A probe that got no answer or an error."""


class StampedSocket:
    """A blocking connection whose requests and answers the kernel stamps."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Not settimeout: Python would poll, and poll returns at once while a stamp lies in the queue of errors.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", TIMEOUT_S, 0))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, SOF_TX_SOFTWARE | SOF_RX_SOFTWARE | SOF_SOFTWARE | SOF_OPT_ID | SOF_OPT_TSONLY)

    def ask(self, request, answer_of):
        """(answer, seconds by the kernel or None, seconds by this process)."""
        begun = time.perf_counter()
        self.socket.sendall(request)
        # One byte, because the kernel gives the stamp of the last packet that a read takes from.
        data, arrived = self.receive(1)
        while (answer := answer_of(data)) is None:
            data += self.receive(1 << 16)[0]
        own = time.perf_counter() - begun
        sent = self.sent()
        return answer, None if sent is None or arrived is None else (arrived - sent) / 1e9, own

    def warm(self, request, answer_of):
        """Asks until the kernel stamps: it begins to shortly after the first socket of the machine wants stamps. False if it never does."""
        deadline = time.monotonic() + WARM_S
        while self.ask(request, answer_of)[1] is None:
            if time.monotonic() > deadline:
                return False
        return True

    def receive(self, size):
        try:
            data, ancillary, _, _ = self.socket.recvmsg(size, 256)
        except BlockingIOError:
            raise ProbeError(f"no answer within {TIMEOUT_S} s") from None
        if not data:
            raise ProbeError("connection closed by the server")
        return data, stamp(ancillary)

    def sent(self):
        """When the last request was handed to the device, ns; earlier stamps in the queue are passed over."""
        found = None
        while True:
            try:
                _, ancillary, _, _ = self.socket.recvmsg(0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            found = stamp(ancillary) or found

    def close(self):
        self.socket.close()


def stamp(ancillary):
    """The software stamp among control messages, ns of CLOCK_REALTIME, or None."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING and len(data) >= 16:
            seconds, nanos = struct.unpack_from("qq", data)
            if seconds:
                return seconds * 10**9 + nanos
    return None


def probe(connection, name, protocol, text, record):
    """One request; an answer that is an error is recorded as one."""
    if protocol == "http":
        (status, body), kernel, own = connection.ask(http_request("GET", text), http_answer)
        error = f"HTTP {status}: {body[-300:].decode(errors='replace')}" if status != 200 or b'"error":' in body[-2000:] else None
    else:
        (_, error), kernel, own = connection.ask(pg_query(text), pg_answer)
    if error:
        record.failed(f"metadata {name}", error)
    if kernel is None:
        record.counts[WITHOUT_STAMPS] += 1
    else:
        record.took("metadata", kernel)
        record.took(f"metadata {name}", kernel)
    record.took("metadata, prober's clock", own)


def probe_until_end(plan, number, record, lock):
    """One kind of probe, each `PROBE_EVERY_S`, on a connection of its own: a slow kind delays no other."""
    name, protocol, text = PROBES[number]
    due = plan.start + PROBE_EVERY_S * number / len(PROBES)
    try:
        connection = StampedSocket(plan.http_port if protocol == "http" else plan.pg_port)
        if protocol == "pg":
            connection.ask(pg_startup(), pg_answer)
            connection.warm(pg_query(""), pg_answer)
        else:
            connection.warm(http_request("GET", "/ping"), http_answer)
        while due < plan.end:
            time.sleep(max(0.0, due - time.monotonic()))
            taken = Record(None)
            probe(connection, name, protocol, text, taken)
            skipped = max(0, int((time.monotonic() - due) // PROBE_EVERY_S))
            taken.counts[SKIPPED] += skipped
            due += PROBE_EVERY_S * (1 + skipped)
            with lock:
                record.add(taken)
        connection.close()
    except (ProbeError, OSError) as error:
        with lock:
            record.failed(f"metadata {name}", error)


def run(plan, record):
    """All kinds of probes side by side until the end. A probe that takes longer than the interval leaves out the next ones."""
    lock = threading.Lock()
    threads = [threading.Thread(target=probe_until_end, args=(plan, number, record, lock)) for number in range(len(PROBES))]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(SNAPSHOT_S)
            with lock:
                record.snapshot()
    record.end()
