"""Writes a software bill of materials (CycloneDX 1.5, JSON) from lock files.

usage: packaging/sbom.py --version 0.1.0 [--npm console/package-lock.json] Cargo.lock > tidalite.cdx.json

In: Cargo.lock and, with --npm, the lock file of the pages of the server. Out: the packages that `tidalite-server`
depends on, directly or not, with versions, checksums and the dependencies among them. A lock file does not tell
development dependencies from others, so both are included; npm marks development dependencies, and those are left
out. The same inputs and the same SOURCE_DATE_EPOCH give the same bytes.
"""

import argparse
import base64
import json
import os
import tomllib
import urllib.parse
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROOT = "tidalite-server"
NAMESPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")


def cargo_packages(lock):
    """(packages by key, dependencies by key) of those that ROOT reaches."""
    packages = {}
    by_name = {}
    for package in lock["package"]:
        key = (package["name"], package["version"])
        packages[key] = package
        by_name.setdefault(package["name"], []).append(key)

    def resolve(dependency):
        name, *version = dependency.split(" ")
        return (name, version[0]) if version else by_name[name][0]

    edges, open_keys = {}, [by_name[ROOT][0]]
    while open_keys:
        key = open_keys.pop()
        if key not in edges:
            edges[key] = sorted(resolve(d) for d in packages[key].get("dependencies", []))
            open_keys += edges[key]
    return {key: packages[key] for key in edges}, edges


def cargo_component(package):
    name, version = package["name"], package["version"]
    component = {
        "type": "library",
        "bom-ref": f"cargo:{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if "checksum" in package:
        component["hashes"] = [{"alg": "SHA-256", "content": package["checksum"]}]
    return component


def npm_components(lock):
    for path, package in sorted(lock["packages"].items()):
        name = path.rpartition("node_modules/")[2]
        if not path or package.get("dev") or package.get("link"):
            continue
        algorithm, _, digest = package.get("integrity", "").partition("-")
        version = package["version"]
        yield {
            "type": "library",
            "bom-ref": f"npm:{path}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:npm/{urllib.parse.quote(name, safe='/')}@{version}",
            **({"licenses": [{"expression": package["license"]}]} if "license" in package else {}),
            **({"hashes": [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}]} if algorithm == "sha512" else {}),
        }


def bill(cargo_lock, npm_lock, version):
    packages, edges = cargo_packages(cargo_lock)
    libraries = [cargo_component(packages[key]) for key in sorted(packages) if key[0] != ROOT]
    root_key = next(key for key in packages if key[0] == ROOT)
    pages = list(npm_components(npm_lock)) if npm_lock else []

    def ref(key):
        return "tidalite" if key == root_key else f"cargo:{key[0]}@{key[1]}"

    dependencies = [{"ref": ref(key), "dependsOn": sorted(set(map(ref, edges[key])))} for key in sorted(edges)]
    for entry in dependencies:
        if entry["ref"] == "tidalite":
            entry["dependsOn"] += [page["bom-ref"] for page in pages]
    dependencies += [{"ref": page["bom-ref"], "dependsOn": []} for page in pages]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "tidalite",
                "name": "tidalite",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": libraries + pages,
        "dependencies": dependencies,
    }
    content["serialNumber"] = f"urn:uuid:{uuid.uuid5(NAMESPACE, json.dumps(content, sort_keys=True))}"
    if "SOURCE_DATE_EPOCH" in os.environ:
        built = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
        content["metadata"]["timestamp"] = built.strftime("%Y-%m-%dT%H:%M:%SZ")
    return content


def main():
    parser = argparse.ArgumentParser(description="Writes a software bill of materials from lock files.")
    parser.add_argument("lock", type=Path, help="Cargo.lock")
    parser.add_argument("--version", required=True)
    parser.add_argument("--npm", type=Path, help="package-lock.json")
    options = parser.parse_args()
    npm_lock = json.loads(options.npm.read_text()) if options.npm else None
    print(json.dumps(bill(tomllib.loads(options.lock.read_text()), npm_lock, options.version), indent=1))


if __name__ == "__main__":
    main()
