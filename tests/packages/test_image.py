"""The last stage of the image, in a folder: its script, its user, its settings, its health check.

Docker does not run here. The folder has the program, bash and their libraries; the server runs there by chroot with the
user, the environment and the command of the Dockerfile.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from conftest import PACKAGING, ROOT, run
from server import Server, binary

DOCKER = PACKAGING / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
LAST = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]


def dockerfile_environment():
    block = re.search(r"^ENV ((?:.*\\\n)*.*)", LAST, re.M).group(1)
    return dict(pair.split("=", 1) for pair in block.replace("\\\n", " ").split())


@pytest.fixture(scope="module")
def image(stripped, tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("root is missing: the server runs by chroot")
    folder = tmp_path_factory.mktemp("image")
    run(PACKAGING / "install.sh", "install", BINARY=stripped, STRIP="no", PREFIX="/usr", DESTDIR=folder / "tree")
    root = folder / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "tmp").mkdir(mode=0o777)
    run("sh", DOCKER / "final.sh", folder / "tree", root)
    for program in (stripped, "/bin/bash"):
        for library in re.findall(r"(/\S+) \(0x", run("ldd", program)):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy("/bin/bash", root / "bin/bash")
    yield root
    shutil.rmtree(folder)


class Contained(Server):
    def __init__(self, folder, image, **options):
        super().__init__(folder, **options)
        self.image = image
        ports = (("HTTP", self.http_port), ("PG", self.pg_port), ("HEALTH", self.health_port))
        self.variables = {**dockerfile_environment(), **{f"TIDALITE_{name}_LISTEN": f"127.0.0.1:{port}" for name, port in ports}}

    def inside(self, *command, **variables):
        user = re.search(r"^USER (\S+)", LAST, re.M).group(1)
        return {"args": [shutil.which("chroot"), f"--userspec={user}", str(self.image), *command], "env": {**self.variables, **variables}, "stdin": subprocess.DEVNULL}

    def spawn(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        entry, command = (re.search(rf'^{word} \["([^"]+)"\]', LAST, re.M).group(1) for word in ("ENTRYPOINT", "CMD"))
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(**self.inside(entry, command, **self.env), stdout=log, stderr=log)
        return self

    def health_check(self):
        command = re.search(r'^HEALTHCHECK .*CMD \["([^"]+)"\]', LAST, re.M).group(1)
        return subprocess.run(**self.inside(command), capture_output=True, check=False).returncode


def test_server_runs_in_the_image(image, tmp_path):
    server = Contained(tmp_path, image)
    assert server.health_check() == 1, "no server runs yet"
    server.start()
    try:
        assert (os.stat(f"/proc/{server.process.pid}").st_uid, os.stat(image / "var/lib/tidalite").st_uid) == (10001, 10001)
        assert server.health_check() == 0
        assert server.request("POST", "/write", body=b"t,a=b x=1i")[0] == 204
        assert server.stop() == 0
        assert any((image / "var/lib/tidalite").iterdir()) and server.health_check() == 1
    finally:
        if server.process:
            server.kill()


def test_image_wants_credentials(image):
    ended = subprocess.run(
        [shutil.which("chroot"), "--userspec=10001:10001", str(image), "/usr/bin/tidalite", "serve"],
        env=dockerfile_environment(), capture_output=True, text=True, check=False, timeout=60,
    )
    assert ended.returncode == 2 and "http.user" in ended.stderr


def test_variables_of_all_manifests_are_settings():
    known = set(re.findall(r"`(TIDALITE_[A-Z_]+)`", run(binary(), "config", "--markdown")))
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    stateful = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    used = {*dockerfile_environment(), *compose["services"]["tidalite"]["environment"], *(variable["name"] for variable in stateful["env"])}
    assert used <= known


def test_compose_mounts_what_exists():
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    sources = [mount.split(":")[0] for service in compose["services"].values() for mount in service["volumes"]]
    folders = [DOCKER / source for source in sources if source.startswith(".")]
    assert folders and all(folder.is_dir() for folder in folders)
    assert {source for source in sources if not source.startswith(".")} == set(compose["volumes"])
    build = compose["services"]["tidalite"]["build"]
    assert (DOCKER / build["context"] / build["dockerfile"]).resolve() == DOCKER / "Dockerfile"
    assert compose["services"]["grafana"]["environment"]["TIDALITE_PG"] == "tidalite:" + dockerfile_environment()["TIDALITE_PG_LISTEN"].split(":")[1]


def manifest(kind, name=None):
    texts = [(PACKAGING / "kubernetes" / file).read_text() for file in ("service.yaml", "statefulset.yaml")]
    documents = [document for text in texts for document in yaml.safe_load_all(text)]
    return next(d for d in documents if d["kind"] == kind and name in (None, d["metadata"]["name"]))


def test_kubernetes_ports_labels_and_volumes_fit():
    stateful = manifest("StatefulSet")["spec"]
    pod = stateful["template"]
    container = pod["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    environment = dockerfile_environment()
    assert ports == {name: int(environment[f"TIDALITE_{name.upper()}_LISTEN"].split(":")[1]) for name in ("http", "pg", "health")}
    assert stateful["selector"]["matchLabels"] == pod["metadata"]["labels"]
    for name in ("tidalite", "tidalite-pods"):
        service = manifest("Service", name)["spec"]
        assert service["selector"] == pod["metadata"]["labels"]
        assert all(ports[port["targetPort"]] == port["port"] for port in service["ports"])
    assert stateful["serviceName"] == "tidalite-pods"
    volumes = {v["name"] for v in pod["spec"]["volumes"]} | {c["metadata"]["name"] for c in stateful["volumeClaimTemplates"]}
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    data = next(variable["value"] for variable in container["env"] if variable["name"] == "TIDALITE_DATA")
    assert set(mounts) == volumes and data.startswith(mounts["data"] + "/")


def test_probes_answer(tmp_path):
    container = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    assert {probe["port"] for probe in probes} == {"health"}
    server = Server(tmp_path / "server").start()
    server.http_port, http = server.health_port, server.http_port
    assert [server.request("GET", probe["path"])[0] for probe in probes] == [200, 200, 200]
    server.http_port = http
    server.stop()


def test_no_manifest_names_a_path_of_the_build_machine():
    for path in [*PACKAGING.rglob("*"), *(ROOT / "examples").rglob("*")]:
        if path.is_file() and path.suffix != ".pyc":
            assert str(Path.home()) + "/" not in path.read_text() and str(ROOT) not in path.read_text(), path
