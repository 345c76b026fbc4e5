"""The log is synced before a request is acknowledged: read off a trace of the server's system calls.

Requests come one at a time, so between two acknowledgements the trace must hold a write to a file of the log,
after its end a sync of the same file, and after the end of that the start of the 204.
"""

import re
import shutil

import pytest

REQUESTS = 20
CALLS = "read,readv,recvfrom,recvmsg,write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fdatasync,fsync"

# `1234 call(5</path or socket>, ...) = 0`, split in two where another thread's call came between.
WHOLE = re.compile(r"^(\d+) +(\w+)\((\d+)<(.*?)>(?=[,)])(.*)\) += (-?\d+)")
BEGUN = re.compile(r"^(\d+) +(\w+)\((\d+)<(.*?)>(?=[,) ])(.*) <unfinished \.\.\.>$")
ENDED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*) = (-?\d+)")


def events(trace):
    """(kind, call, file, rest) in order; kind is `begin` or `end`, and an end has succeeded."""
    open_calls = {}
    for line in trace.splitlines():
        if m := WHOLE.match(line):
            yield "begin", m[2], m[4], m[5]
            if int(m[6]) >= 0:
                yield "end", m[2], m[4], m[5]
        elif m := BEGUN.match(line):
            open_calls[m[1]] = m
            yield "begin", m[2], m[4], m[5]
        elif (m := ENDED.match(line)) and m[1] in open_calls:
            begun = open_calls.pop(m[1])
            if int(m[4]) >= 0:
                yield "end", begun[2], begun[4], begun[5] + m[3]


def synced_before_each_204(trace, folder):
    """For each /write that was answered: the files of `folder` written and then synced since the one before."""
    posted, dirty, clean, proofs = set(), {}, set(), []
    for kind, call, file, rest in events(trace):
        if call in ("fdatasync", "fsync"):
            # Only what was written before the sync began is covered by it.
            if kind == "begin":
                dirty[file] = dirty.get(file) and "syncing"
            elif dirty.get(file) == "syncing":
                dirty.pop(file)
                clean.add(file)
        elif file.startswith(folder):
            if kind == "end" and "write" in call:
                dirty[file] = "written"
        elif kind == "end" and ("read" in call or "recv" in call) and '"POST /write' in rest:
            posted.add(file)
        elif kind == "begin" and "HTTP/1.1 204" in rest and file in posted:
            posted.remove(file)
            proofs.append(frozenset(clean))
            clean = set()
    return proofs


TRACE = """\
7 recvfrom(9<socket:[1]>, "POST /write HTTP/1.1", 8192, 0, NULL, NULL) = 20
8 pwrite64(4</d/log/1>, "x"..., 64, 0) = 64
8 fdatasync(4</d/log/1> <unfinished ...>
7 recvfrom(9<socket:[1]>, 0x1, 8192, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)
8 <... fdatasync resumed>) = 0
7 sendto(9<socket:[1]>, "HTTP/1.1 204 No Content", 23, MSG_NOSIGNAL, NULL, 0) = 23
7 sendto(9<socket:[2]>, "HTTP/1.1 204 No Content", 23, MSG_NOSIGNAL, NULL, 0) = 23
7 recvfrom(9<socket:[3]>,  <unfinished ...>
8 pwrite64(4</d/log/1>, "x"..., 64, 0) = 64
7 <... recvfrom resumed>"POST /write HTTP/1.1", 8192, 0, NULL, NULL) = 20
8 fdatasync(4</d/log/1> <unfinished ...>
8 pwrite64(4</d/log/1>, "x"..., 64, 0) = 64
7 writev(9<socket:[3]>, [{iov_base="HTTP/1.1 204 No Content", iov_len=23}], 1) = 23
8 <... fdatasync resumed>) = 0
"""


def test_the_trace_is_read_right():
    """The second request of this trace is answered while its sync is under way."""
    assert synced_before_each_204(TRACE, "/d/log/") == [{"/d/log/1"}, set()]


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.timeout(240)
def test_every_204_comes_after_a_sync_of_the_log(servers, tmp_path):
    trace = tmp_path / "trace"
    server = servers(prefix=["strace", "-f", "-y", "-q", "-s", "64", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(trace), "--"])
    server.start()
    for k in range(REQUESTS):
        server.write_ok("".join(f"t,host=h{n} v={n}i {1704067200000000000 + k * 1000 + n}\n" for n in range(10)))
    server.wait_count("t", REQUESTS * 10)
    server.stop(60)

    proofs = synced_before_each_204(trace.read_text(errors="replace"), f"{server.data}/wal/")
    assert len(proofs) == REQUESTS, f"{len(proofs)} acknowledgements in the trace"
    unsynced = [k for k, files in enumerate(proofs) if not files]
    assert not unsynced, f"acknowledgements {unsynced} left before the log was written and synced"
    logs = sorted(set.union(*map(set, proofs)))
    print(f"synced before each of {REQUESTS} acknowledgements: {logs}")
