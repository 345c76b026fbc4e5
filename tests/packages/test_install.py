"""`packaging/install.sh` into a folder: files, the settings file, the unit, a second installation, removal."""

import os
import re
import shutil
import stat

import pytest
from conftest import PACKAGING, ROOT, run, unit_values
from server import Server, binary

SCRIPT = PACKAGING / "install.sh"


@pytest.fixture(scope="module")
def tree(stripped, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    run(SCRIPT, "install", BINARY=stripped, DESTDIR=folder, PREFIX="/usr/local", STRIP="no")
    yield folder
    shutil.rmtree(folder)


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_files_and_modes(tree):
    modes = {
        "usr/local/bin/tidalite": 0o755,
        "usr/local/lib/systemd/system/tidalite.service": 0o644,
        "usr/local/lib/sysusers.d/tidalite.conf": 0o644,
        "usr/local/share/doc/tidalite/LICENSE": 0o644,
        "etc/tidalite/tidalite.toml": 0o640,
    }
    assert {name: stat.S_IMODE((tree / name).stat().st_mode) for name in modes} == modes


def test_debug_information_is_in_a_file_of_its_own(stub, tmp_path):
    run(SCRIPT, "install", BINARY=stub, DESTDIR=tmp_path, WITH_DEBUG="yes")
    program = run("readelf", "--wide", "--sections", tmp_path / "usr/local/bin/tidalite")
    debug = run("readelf", "--wide", "--sections", tmp_path / "usr/local/lib/debug/tidalite.debug")
    assert (".debug_info" in program, ".gnu_debuglink" in program, ".debug_info" in debug) == (False, True, True)


def test_man_pages_and_completions_are_those_the_binary_has(tree, tmp_path):
    knows = "completions" in run_quietly(binary(), "completions", "bash")
    share = tree / "usr/local/share"
    completions = ["bash-completion/completions/tidalite", "zsh/site-functions/_tidalite", "fish/vendor_completions.d/tidalite.fish"]
    assert [(share / name).exists() for name in completions] == [knows] * 3
    pages = tmp_path / "pages"
    pages.mkdir()
    run_quietly(binary(), "man", pages)
    installed = share / "man/man1"
    assert {p.name for p in pages.iterdir()} == ({p.name for p in installed.iterdir()} if installed.exists() else set())


def test_unit_starts_the_installed_program(tree):
    unit = unit_values(tree / "usr/local/lib/systemd/system/tidalite.service")
    assert unit["ExecStart"] == "/usr/local/bin/tidalite serve --config /etc/tidalite/tidalite.toml"
    assert (unit["User"], unit["StateDirectory"], unit["ProtectSystem"]) == ("tidalite", "tidalite", "strict")
    assert (unit["Restart"], unit["RestartPreventExitStatus"]) == ("on-failure", "2")
    assert "@" not in re.sub("SystemCallFilter=@system-service", "", (tree / "usr/local/lib/systemd/system/tidalite.service").read_text())


def test_server_runs_with_the_installed_settings(tree, tmp_path):
    class Installed(Server):
        def command(self):
            return [str(tree / "usr/local/bin/tidalite"), *super().command()[1:], "--config", str(tree / "etc/tidalite/tidalite.toml")]

    server = Installed(tmp_path / "server").start()
    assert server.request("POST", "/write", body=b"t,a=b x=1i")[0] == 204
    assert server.exec("SELECT a, x FROM t")["dataset"] == [["b", 1]]
    server.stop()


def test_settings_file_is_that_of_the_binary():
    page = run(binary(), "config", "--markdown")
    ended = run("sh", "-c", f'"{binary()}" config --markdown | python3 "{PACKAGING}/settings.py"')
    assert ended == (PACKAGING / "tidalite.toml").read_text(), "run: make docs"
    assert page.count("\n## ") == len(re.findall(r"^#?[a-z_.]+ = ", ended, re.M))


def test_every_line_of_the_settings_file_is_accepted(tmp_path):
    text = (PACKAGING / "tidalite.toml").read_text()
    active = tmp_path / "active.toml"
    active.write_text(re.sub(r"^#([a-z_.]+ = )", r"\1", text, flags=re.M))
    effective = run(binary(), "config", "--config", active)
    assert effective.count(f"# {active}") == len(re.findall(r"^#?[a-z_.]+ = ", text, re.M))

    # Defaults as comments are the defaults of the binary.
    defaults = dict(re.findall(r"^([a-z_.]+) = (.*)  # default$", run(binary(), "config"), re.M))
    written = dict(re.findall(r"^#([a-z_.]+) = (.*)$", text, re.M))
    del defaults["data"]
    assert {key: written[key].strip('"') for key in defaults} == {key: value.strip('"') for key, value in defaults.items()}


def test_second_installation_keeps_settings_and_removal_leaves_them(stub, tmp_path):
    settings = tmp_path / "etc/tidalite/tidalite.toml"
    run(SCRIPT, "install", BINARY=stub, DESTDIR=tmp_path)
    settings.write_text("read_only = true\n")
    assert "kept" in run(SCRIPT, "install", BINARY=stub, DESTDIR=tmp_path)
    assert settings.read_text() == "read_only = true\n"

    run(SCRIPT, "uninstall", DESTDIR=tmp_path)
    assert files_below(tmp_path) == {"etc/tidalite/tidalite.toml"}


def test_install_without_a_program_says_what_to_do(tmp_path):
    with pytest.raises(AssertionError, match="run make build"):
        run(SCRIPT, "install", BINARY=tmp_path / "absent", DESTDIR=tmp_path)


def test_readme_and_examples_are_named_in_install_page():
    page = (ROOT / "docs/install.md").read_text()
    for name in ("packaging/install.sh", "packaging/debian/build.sh", "packaging/docker/compose.yaml", "packaging/kubernetes", "packaging/release.sh", "examples/"):
        assert name in page and os.path.exists(ROOT / name)


def run_quietly(*command):
    try:
        return run(*command)
    except AssertionError:
        return ""
