"""The files of the web console as the server sends them; `tests/console` runs the console in a browser."""

import gzip
import re
import shutil
import subprocess

import pytest


def has_node():
    """True if `console/build.sh` can build the console: npm, and Node.js 20.19 or later."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return False
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, version.strip().lstrip("v").split(".")[:2])) >= (20, 19)


HAS_NODE = has_node()
WITHOUT = "no npm, or Node.js older than 20.19: the server is built without the console"


def page(server, headers):
    status, headers, body = server.request("GET", "/", headers=headers)
    assert status == 200
    return headers, body if isinstance(body, bytes) else body.encode()


def test_the_console_is_embedded(server):
    if not HAS_NODE:
        pytest.skip(WITHOUT)
    headers, body = page(server, {})
    assert "make console" not in body.decode(), "the plain page of a server without the console"
    assert headers["cache-control"] == "no-cache" and "content-encoding" not in headers
    assets = re.findall(r'(?:src|href)="(/assets/[^"]+)"', body.decode())
    assert any(name.endswith(".js") for name in assets) and any(name.endswith(".css") for name in assets), assets
    for name in assets:
        status, headers, _ = server.request("GET", name)
        assert status == 200 and "immutable" in headers["cache-control"], name
    assert server.request("GET", "/assets/nosuch.js")[0] == 404


def test_only_the_server_itself_may_serve_scripts(server):
    if not HAS_NODE:
        pytest.skip(WITHOUT)
    headers, body = page(server, {})
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "script-src" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert not re.search(rb"<script(?![^>]*\bsrc=)", body) and not re.search(rb'(?:src|href)="https?:', body)


def test_files_are_sent_compressed_to_whom_accepts_it(server):
    if not HAS_NODE:
        pytest.skip(WITHOUT)
    _, plain = page(server, {})
    headers, compressed = page(server, {"Accept-Encoding": "br, gzip"})
    assert headers["content-encoding"] == "gzip" and gzip.decompress(compressed) == plain


def test_the_console_needs_no_credentials(servers):
    server = servers(env={"TIDALITE_HTTP_USER": "ada", "TIDALITE_HTTP_PASSWORD": "love"}).start()
    assert server.request("GET", "/")[0] == 200
    assert server.request("GET", "/exec?query=select+1")[0] == 401
    assert server.request("POST", "/", "")[0] == 401
