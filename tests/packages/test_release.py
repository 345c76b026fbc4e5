"""`packaging/release.sh` for a tag of a copy of this repository, with a small program in place of the server."""

import hashlib
import json
import re
import subprocess
import tomllib

import pytest
from conftest import PACKAGING, ROOT, run


@pytest.fixture(scope="module")
def tagged(stub, tmp_path_factory):
    """(copy of the tracked files as a repository with a tag, version)"""
    version = run(stub, "--version").split()[1]
    folder = tmp_path_factory.mktemp("release") / "copy"
    folder.mkdir()
    run("sh", "-c", f'cd "{ROOT}" && git ls-files -z packaging examples docs README.md LICENSE CHANGELOG.md Cargo.toml Cargo.lock | xargs -0 cp --parents -t "{folder}"')
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased", f"## Unreleased\n\n## {version}\n\n- A change of this release.\n\n## 0.0.0", 1))
    git = ("git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@example.com")
    run("git", "init", "-q", folder)
    run(*git, "add", "-A")
    run(*git, "commit", "-q", "-m", "copy")
    run(*git, "tag", f"v{version}")
    return folder, version


def test_files_of_a_release(tagged, stub, tmp_path):
    folder, version = tagged
    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        run(folder / "packaging/release.sh", f"v{version}", BINARY=stub, OUT=out, DEB_COMPRESSION="gzip", PATH=path_without_docker(tmp_path))
    machine = f"linux-{run('uname', '-m').strip()}"
    names = {
        "SHA256SUMS", "tidalite.rb", f"tidalite_{version}_{run('dpkg', '--print-architecture').strip()}.deb",
        *(f"tidalite-{version}-{part}" for part in ("source.tar.gz", f"{machine}.tar.gz", f"{machine}-debug.tar.gz", "kubernetes.yaml", "notes.md")),
        f"tidalite-{version}.cdx.json",
    }
    assert {path.name for path in outs[0].iterdir()} == names
    sums = dict(reversed(line.split()) for line in (outs[0] / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((outs[0] / name).read_bytes()).hexdigest() for name in names - {"SHA256SUMS"}}
    assert (outs[0] / "SHA256SUMS").read_text() == (outs[1] / "SHA256SUMS").read_text(), "a second build has other bytes"

    notes = (outs[0] / f"tidalite-{version}-notes.md").read_text()
    assert "- A change of this release." in notes and "## 0.0.0" not in notes and "@" not in notes
    assert f"image: tidalite:{version}\n" in (outs[0] / f"tidalite-{version}-kubernetes.yaml").read_text()
    formula = (outs[0] / "tidalite.rb").read_text()
    assert sums[f"tidalite-{version}-source.tar.gz"] in formula and not re.search(r"@[A-Z]+@", formula)

    run("tar", "-x", "-C", tmp_path, "-f", outs[0] / f"tidalite-{version}-{machine}.tar.gz")
    unpacked = tmp_path / f"tidalite-{version}"
    run(unpacked / "packaging/install.sh", "install", BINARY=unpacked / "bin/tidalite", DESTDIR=tmp_path / "tree")
    assert run(tmp_path / "tree/usr/local/bin/tidalite", "--version") == f"tidalite {version}\n"


def path_without_docker(tmp_path):
    """A PATH whose `docker` fails: an image takes an hour to build."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "bin/docker").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/docker").chmod(0o755)
    return f"{tmp_path / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.mark.parametrize(("tag", "changelog", "message"), [("v0.0.7", None, "Cargo.toml has version"), (None, "# Changelog\n", "no section")])
def test_release_refuses(tagged, stub, tmp_path, tag, changelog, message):
    folder, version = tagged
    tag = tag or f"v{version}+other"
    copy = tmp_path / "copy"
    run("git", "clone", "-q", folder, copy)
    if changelog:
        (copy / "CHANGELOG.md").write_text(changelog)
        tag = f"v{version}"
    run("git", "-C", copy, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-am", "other")
    run("git", "-C", copy, "tag", "-f", tag)
    ended = subprocess.run(
        [copy / "packaging/release.sh", tag], env={"PATH": path_without_docker(tmp_path), "BINARY": str(stub), "OUT": str(tmp_path / "out")},
        capture_output=True, text=True, check=False,
    )
    assert ended.returncode == 1 and message in ended.stderr


def test_bill_names_every_package_the_server_reaches():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    bill = json.loads(run("python3", PACKAGING / "sbom.py", "--version", "1.2.3", ROOT / "Cargo.lock", SOURCE_DATE_EPOCH="0"))
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "1.2.3")
    assert bill["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    checksums = {f"cargo:{p['name']}@{p['version']}": p.get("checksum") for p in lock["package"]}
    for component in bill["components"]:
        found = [digest["content"] for digest in component.get("hashes", [])]
        assert found == [sum_ for sum_ in [checksums[component["bom-ref"]]] if sum_]
    refs = {"tidalite", *(component["bom-ref"] for component in bill["components"])}
    assert len(refs) == len(bill["components"]) + 1
    assert {entry["ref"] for entry in bill["dependencies"]} == refs
    assert {ref for entry in bill["dependencies"] for ref in entry["dependsOn"]} <= refs
    names = {component["name"] for component in bill["components"]}
    assert {"datafusion", "tokio", "tidalite-storage"} <= names and "xtask" not in names


def test_bill_of_pages_leaves_development_packages_out(tmp_path):
    lock = tmp_path / "package-lock.json"
    digest = "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="  # of no bytes
    lock.write_text(json.dumps({"packages": {
        "": {"name": "console"},
        "node_modules/@a/b": {"version": "1.0.0", "integrity": f"sha512-{digest}", "license": "MIT"},
        "node_modules/tool": {"version": "2.0.0", "dev": True},
    }}))
    bill = json.loads(run("python3", PACKAGING / "sbom.py", "--version", "1", "--npm", lock, ROOT / "Cargo.lock"))
    pages = [component for component in bill["components"] if component["purl"].startswith("pkg:npm/")]
    assert [(page["name"], page["purl"]) for page in pages] == [("@a/b", "pkg:npm/%40a/b@1.0.0")]
    assert pages[0]["hashes"] == [{"alg": "SHA-512", "content": hashlib.sha512(b"").hexdigest()}]
