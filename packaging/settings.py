"""Writes the default settings file, `packaging/tidalite.toml`, from the page of settings of the binary.

usage: packaging/settings.py < docs/configuration.md > packaging/tidalite.toml

In: the output of `tidalite config --markdown`. Out: each setting with its description, as a comment with its default.
`data` is the only active line, because the default of the binary is a folder in the working directory.
"""

import re
import sys
import textwrap

ACTIVE = {"data": "/var/lib/tidalite"}
# Examples for settings without a default; a setting without an example gets the empty string.
EXAMPLES = {
    "pg.user": "admin",
    "pg.password": "secret",
    "tls.certificate": "/etc/tidalite/chain.pem",
    "tls.key": "/etc/tidalite/key.pem",
    "http.user": "admin",
    "http.password": "secret",
    "http.tokens": ["token"],
    "http.allowed_hosts": ["db.example.com"],
    "ilp.auth_file": "/etc/tidalite/auth.txt",
    "spill.folder": "/var/lib/tidalite-spill",
    "files.roots": ["/srv/tidalite"],
    "files.hosts": ["data.example.com"],
}
ROW = re.compile(r"^\| \[`([^`]+)`\]\([^)]*\) \| `[^`]+` \| `[^`]+` \| (?:`([^`]*)`|–) \| (.*) \|$", re.M)
HEADER = """\
# Settings of the Tidalite server. Lines that start with #name are defaults or examples.
#
# Environment variables and flags override this file. `tidalite config --config FILE` prints the settings in
# effect and where each comes from. Restart the server after a change: systemctl restart tidalite

"""


def toml_value(value):
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return value if re.fullmatch(r"true|false|\d+", value) else f'"{value}"'


def settings_file(page):
    descriptions = dict(re.findall(r"^## (\S+)\n\n(.+)$", page, re.M))
    rows = ROW.findall(page)
    if not rows or len(rows) != len(descriptions):
        raise SystemExit(f"settings.py: {len(rows)} rows and {len(descriptions)} descriptions in the page of settings")
    parts = [HEADER]
    for key, default, allowed in rows:
        text = f"{descriptions[key]} Allowed: {allowed}." + ("" if default else " No default.")
        parts += [f"# {line}\n" for line in textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)]
        value = ACTIVE.get(key) or default or EXAMPLES.get(key, "")
        parts.append(f"{'' if key in ACTIVE else '#'}{key} = {toml_value(value)}\n\n")
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(settings_file(sys.stdin.read()))
