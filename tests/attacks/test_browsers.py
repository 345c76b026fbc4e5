"""Cross-site requests from pages in browsers read and change nothing; with a real Chromium."""

import base64
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from browser import Browser
from server import eventually

DATA_PATHS = {
    ("GET", "/exec?query=select+1"): None,
    ("POST", "/exec"): b"query=select+1",
    ("GET", "/exp?query=select+1"): None,
    ("POST", "/exp"): b"query=select+1",
    ("GET", "/query?q=show+databases"): None,
    ("POST", "/query"): b"q=show+databases",
    ("GET", "/chk?j=t"): None,
    ("GET", "/api/v1/sql/validate?query=select+1"): None,
    ("POST", "/write"): b"t v=1i 1\n",
    ("POST", "/api/v2/write"): b"t v=1i 1\n",
    ("POST", "/api/v3/write_lp"): b"t v=1i 1\n",
    ("POST", "/write/arrow?table=t"): b"",
    ("POST", "/imp?name=t"): b"a\n1\n",
    ("GET", "/api/v2/buckets"): None,
    ("GET", "/nosuch"): None,
}


def foreign(port):
    """Returns headers of requests that no page of the server sends, by kind."""
    return {
        "another site": {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"},
        "another site, old browser": {"Origin": "http://evil.example"},
        "an image": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        "another port": {"Origin": f"http://127.0.0.1:{port + 1}", "Sec-Fetch-Site": "same-site"},
        "another port, no origin": {"Sec-Fetch-Site": "same-site"},
        "another name of the same machine": {"Origin": f"http://localhost:{port}"},
        "a file": {"Origin": "null"},
        "a name of a stranger": {"Host": f"rebound.example:{port}"},
        "a page of a name of a stranger": {"Host": f"rebound.example:{port}", "Origin": f"http://rebound.example:{port}", "Sec-Fetch-Site": "same-origin"},
        "a name that begins like ours": {"Host": f"localhost.evil.example:{port}"},
    }


def tables(server):
    return sorted(row[0] for row in server.rows("show tables"))


def test_forged_and_foreign_requests_are_refused_on_every_path(servers):
    """15 paths × 10 kinds of foreign requests: 150 refusals with a reason."""
    server, refused = servers().start(), 0
    for (method, path), body in DATA_PATHS.items():
        for what, headers in foreign(server.http_port).items():
            status, _, answer = server.request(method, path, body, headers)
            assert status == 403 and len(answer) > 20, (method, path, what, status, answer)
            refused += 1
    assert refused == 150 == server.metrics()["tidalite_http_pages_refused_total"]
    assert tables(server) == []
    # One line per second after a burst.
    assert server.log.read_text().count("refused a request of a page") <= 40


def test_programs_work_as_before(servers):
    """Requests without browser headers, by every name that cannot be registered in public DNS."""
    server = servers().start()
    for host in ("localhost", "127.0.0.1", "[::1]", "10.1.2.3", "db", "db.internal", "tidalite.local", "LOCALHOST"):
        for name in (host, f"{host}:{server.http_port}"):
            assert server.request("GET", "/exec?query=select+1", headers={"Host": name})[0] == 200, name
    status, _, answer = server.request("POST", "/exec", "create table n (v long)", {"Content-Type": "text/plain"})
    assert status == 200, answer
    status, _, answer = server.request("GET", "/exec?" + urllib.parse.urlencode({"query": "drop table n"}))
    assert status == 200 and tables(server) == [], answer
    for name in ("/ping", "/settings", "/health", "/"):
        assert server.request("GET", name, headers={"Host": "other.example"})[0] in (200, 204)
    _, headers, _ = server.request("GET", "/exec?query=select+1")
    assert headers["x-content-type-options"] == "nosniff" and headers["cross-origin-resource-policy"] == "same-origin"


def test_names_are_configured_or_guarded_by_credentials(servers):
    allowed = servers(env={"TIDALITE_HTTP_ALLOWED_HOSTS": "db.example.com, *.corp.example"}).start()
    for host, status in (("db.example.com", 200), ("a.corp.example:1234", 200), ("corp.example", 403), ("example.com", 403)):
        found, _, answer = allowed.request("GET", "/exec?query=select+1", headers={"Host": host})
        assert found == status, (host, answer)
        assert status == 200 or b"http.allowed_hosts" in answer
    page = {"Host": "db.example.com", "Origin": "https://db.example.com", "Sec-Fetch-Site": "same-origin"}
    assert allowed.request("POST", "/exec", json.dumps({"query": "select 1"}), {**page, "Content-Type": "application/json"})[0] == 200
    closed = servers(env={"TIDALITE_HTTP_TOKENS": "tok"}).start()
    token = {"Authorization": "Bearer tok"}
    assert closed.request("GET", "/exec?query=select+1", headers={"Host": "db.example.com", **token})[0] == 200
    assert closed.request("GET", "/exec?query=select+1", headers={**page, **token})[0] == 403


def test_pages_of_the_server_post_what_no_form_can(servers):
    server = servers().start()
    page = {"Origin": f"http://127.0.0.1:{server.http_port}", "Sec-Fetch-Site": "same-origin"}
    asked = {"query": "select $1 + 1 v", "params": [["long", "41"]], "limit": 5}
    status, _, body = server.request("POST", "/exec", json.dumps(asked), {**page, "Content-Type": "application/json"})
    assert status == 200 and json.loads(body)["dataset"] == [[42]]
    assert server.request("POST", "/exec", "select 1", {**page, "Content-Type": "text/plain", "X-Requested-With": "console"})[0] == 200
    forms = {"text/plain": "query=drop table t", "application/x-www-form-urlencoded": "query=select+1", "multipart/form-data; boundary=x": "--x--", None: "select 1"}
    for content_type, body in forms.items():
        status, _, answer = server.request("POST", "/exec", body, {**page, **({"Content-Type": content_type} if content_type else {})})
        assert status == 403 and b"application/json" in answer, content_type
    assert server.request("POST", "/exec", "{", {**page, "Content-Type": "application/json"})[0] == 400


def test_a_get_of_a_browser_that_names_no_page_only_reads(servers):
    """Chromium sends Sec-Fetch-Site only over TLS and to the same machine; images of other pages are such GETs."""
    server = servers().start()
    server.exec("create table t (v long)")
    agent = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}
    for headers in (agent, {"Sec-Fetch-Site": "none"}):
        assert server.request("GET", "/exec?query=select+1", headers=headers)[0] == 200
        for sql in ("drop table t", "insert into t values (1)", "create table u (v long)", "truncate table t"):
            for path in ("/exec?", "/exp?"):
                status, _, answer = server.request("GET", path + urllib.parse.urlencode({"query": sql}), headers=headers)
                assert status == 403 and b"read-only" in answer, (sql, answer)
    assert tables(server) == ["t"] and server.count("t") == 0
    assert server.request("GET", "/exec?query=select+1", headers={**agent, "Referer": "http://evil.example/"})[0] == 403


ATTACK = """<!doctype html><title>attack</title>%(meta)s<body><script>
const target = %(target)r, seen = [];
const submit = (path, enctype, fields) => new Promise(done => {
  const frame = document.createElement('iframe'); frame.name = 'f' + Math.random(); frame.onload = () => done();
  document.body.append(frame);
  const form = document.createElement('form');
  Object.assign(form, {method: 'POST', action: target + path, enctype, target: frame.name});
  for (const [name, value] of Object.entries(fields)) { const i = document.createElement('input'); i.name = name; i.value = value; form.append(i); }
  document.body.append(form); form.submit(); setTimeout(done, 3000);
});
const load = (tag, path) => new Promise(done => { const e = document.createElement(tag); e.onload = e.onerror = () => done(); e.src = target + path; document.body.append(e); });
const ask = async (path, options) => { try { const a = await fetch(target + path, options); seen.push([a.type, a.status, (await a.text()).slice(0, 200)]); } catch (e) { seen.push(['failed', 0, '']); } };
const sql = text => '/exec?query=' + encodeURIComponent(text);
window.attack = async () => {
  await submit('/exec', 'text/plain', {'create table by_plain_form (v long) --': 'x'});
  await submit('/exec', 'application/x-www-form-urlencoded', {query: 'create table by_form (v long)'});
  await submit('/exec', 'multipart/form-data', {query: 'create table by_multipart (v long)'});
  await submit('/write', 'text/plain', {'by_line v': '1i\\n'});
  await submit('/imp?name=by_import', 'multipart/form-data', {data: 'v\\n1\\n'});
  await load('img', sql('create table by_image (v long)'));
  await load('script', sql('create table by_script (v long)'));
  await load('iframe', sql('create table by_frame (v long)'));
  for (const mode of ['no-cors', 'cors']) for (const credentials of ['include', 'omit']) {
    await ask(sql('create table by_get_' + mode.replace('-', '') + credentials + ' (v long)'), {mode, credentials});
    await ask('/exec', {mode, credentials, method: 'POST', headers: {'Content-Type': 'text/plain'}, body: 'create table by_post_' + mode.replace('-', '') + credentials + ' (v long)'});
    await ask('/write', {mode, credentials, method: 'POST', body: 'by_write_' + mode.replace('-', '') + credentials + ' v=1i'});
    await ask(sql('select v from secret'), {mode, credentials});
  }
  await ask('/exec', {mode: 'cors', credentials: 'include', method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({query: 'create table by_json (v long)'})});
  return seen;
};
</script>"""


@pytest.fixture
def page():
    """Serves a page that attacks the server, on a separate port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            meta = '<meta name="referrer" content="no-referrer">' if "secretly" in self.path else ""
            body = (ATTACK % {"target": self.server.target, "meta": meta}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    attacker = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=attacker.serve_forever, daemon=True).start()
    yield attacker
    attacker.shutdown()


@pytest.fixture
def browser(tmp_path):
    made = Browser(tmp_path / "browser", ["evil.example", "rebound.example", "db.example.com"])
    yield made
    made.close()


SECRET = 736_251_934


def with_secret(server, headers=None):
    for sql in ("create table secret (v long)", f"insert into secret values ({SECRET})"):
        assert server.request("POST", "/exec", sql, {"Content-Type": "text/plain", **(headers or {})})[0] == 200


@pytest.mark.parametrize(("origin", "target"), [
    ("http://evil.example:{}/", "127.0.0.1"),
    ("http://localhost:{}/", "127.0.0.1"),
    ("http://127.0.0.1:{}/", "127.0.0.1"),
    # Without TLS Chromium sends no Sec-Fetch-Site to such a name, and the page suppresses Referer.
    ("http://evil.example:{}/", "db.example.com"),
    ("http://evil.example:{}/secretly", "db.example.com"),
])
def test_a_page_of_another_origin_does_nothing(servers, page, browser, origin, target):
    """25 requests by forms, images, scripts, frames and fetch, from a page of another site, name, or port."""
    server = servers(env={"TIDALITE_HTTP_ALLOWED_HOSTS": "db.example.com"}).start()
    with_secret(server)
    page.target = f"http://{target}:{server.http_port}"
    browser.open(origin.format(page.server_address[1]))
    seen = browser.run("attack()")
    assert len(seen) == 17 and not any(str(SECRET) in text for _, _, text in seen), seen
    assert tables(server) == ["secret"]
    refused = server.metrics()["tidalite_http_pages_refused_total"]
    assert refused >= (10 if "secretly" in origin else 20), refused


def test_cached_credentials_do_not_help_a_page(servers, page, browser):
    server = servers(env={"TIDALITE_HTTP_USER": "ada", "TIDALITE_HTTP_PASSWORD": "love"}).start()
    basic = {"Authorization": "Basic " + base64.b64encode(b"ada:love").decode()}
    with_secret(server, basic)
    own = f"http://127.0.0.1:{server.http_port}"
    # The browser caches the credentials of a request that it was asked for.
    browser.open(own.replace("http://", "http://ada:love@") + "/exec?query=select+1")
    browser.open(own + "/")
    # A page of the server may use the credentials that the browser has cached.
    script = "fetch(location.origin + '/exec', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({query: 'select v from secret'})}).then(a => a.text())"
    assert str(SECRET) in browser.run(script)
    page.target = own
    for origin in ("http://evil.example:{}", "http://127.0.0.1:{}"):
        browser.open(origin.format(page.server_address[1]) + "/")
        seen = browser.run("attack()")
        assert not any(str(SECRET) in text for _, _, text in seen), seen
    status, _, body = server.request("GET", "/exec?query=show+tables", headers=basic)
    assert status == 200 and [row[0] for row in json.loads(body)["dataset"]] == ["secret"]


def test_a_name_that_a_stranger_turned_to_us_reads_nothing(servers, page, browser):
    """DNS rebinding: the name of the page, rebound.example, resolves to the server."""
    server = servers().start()
    with_secret(server)
    browser.open(f"http://rebound.example:{server.http_port}/")
    script = "Promise.all(['/exec?query=select+v+from+secret', '/exp?query=select+v+from+secret', '/exec?query=drop+table+secret'].map(p => fetch(p).then(async a => [a.status, await a.text()])))"
    for status, text in browser.run(script):
        assert status == 403 and str(SECRET) not in text and "rebound.example" in text
    post = "fetch('/exec', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({query: 'drop table secret'})}).then(a => a.status)"
    assert browser.run(post) == 403
    assert tables(server) == ["secret"]


def test_the_start_page_works_by_every_allowed_name(servers, browser):
    server = servers(env={"TIDALITE_HTTP_ALLOWED_HOSTS": "db.example.com"}).start()
    for name in ("127.0.0.1", "localhost", "db.example.com"):
        browser.open(f"http://{name}:{server.http_port}/")
        # A request as the page sends it.
        post = "fetch('/exec', {{method: 'POST', headers: {{'Content-Type': 'application/json'}}, body: JSON.stringify({{query: '{}'}})}}).then(a => a.text())"
        assert '"dataset":[[42]]' in browser.run(post.format("select 40 + 2 v")), name
        assert '"ddl":"OK"' in browser.run(post.format("create table if not exists by_page (v long)")), name
    assert tables(server) == ["by_page"]
