"""Puts the package together from what `cargo build --release --workspace` made.

    pack.py TARGET/release FOLDER       an importable folder: FOLDER/tidalite, and what it says of itself beside it
    pack.py TARGET/release FOLDER.whl   FOLDER.whl/tidalite-VERSION-cp311-abi3-PLATFORM.whl

maturin would build this crate alone and, with the features that gives shared crates, all of DataFusion again.
"""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = {"linux": "libtidalite_native.so", "darwin": "libtidalite_native.dylib", "win32": "tidalite_native.dll"}


def version():
    manifest = (HERE.parent.parent / "Cargo.toml").read_text()
    return re.search(r'\[workspace\.package\]\s+version = "([^"]+)"', manifest).group(1)


def lay_out(library, folder):
    package = folder / "tidalite"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(HERE / "tidalite", package, ignore=shutil.ignore_patterns("__pycache__"))
    name = "_native.pyd" if sys.platform == "win32" else "_native.abi3.so"
    shutil.copy2(library, package / name)
    for old in folder.glob("tidalite-*.dist-info"):
        shutil.rmtree(old)
    (folder / dist_info()).mkdir()
    for name, content in metadata().items():
        (folder / dist_info() / name).write_bytes(content)
    return package


def dist_info():
    return f"tidalite-{version()}.dist-info"


def metadata():
    """What is said of the package, by name of the file in its dist-info folder."""
    text = (
        f"Metadata-Version: 2.4\nName: tidalite\nVersion: {version()}\nRequires-Python: >=3.11\nLicense-Expression: Apache-2.0\n"
        "Summary: A time-series database, in process and over the network\nProvides-Extra: pandas\n"
        "Requires-Dist: pandas>=2.2; extra == 'pandas'\nRequires-Dist: pyarrow>=18; extra == 'pandas'\n"
        "Provides-Extra: polars\nRequires-Dist: polars>=1.20; extra == 'polars'\n"
        "Provides-Extra: sqlalchemy\nRequires-Dist: sqlalchemy>=2.0; extra == 'sqlalchemy'\n"
        "Requires-Dist: pyarrow>=18; extra == 'sqlalchemy'\n"
    )
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    return {"METADATA": text.encode(), "entry_points.txt": points.encode()}


def wheel(library, folder):
    folder.mkdir(parents=True, exist_ok=True)
    package = lay_out(library, folder / "unpacked")
    strip = shutil.which("strip")
    if strip and sys.platform == "linux":
        # Two thirds of it say which line of source an instruction came from.
        subprocess.run([strip, "--strip-debug", str(package / "_native.abi3.so")], check=True)
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    info = dist_info()
    tag = f"cp311-abi3-{platform}"
    files = {f"tidalite/{path.name}": path.read_bytes() for path in sorted(package.iterdir()) if path.is_file()}
    files.update({f"{info}/{name}": content for name, content in metadata().items()})
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tidalite pack.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = ""
    path = folder / f"tidalite-{version()}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    shutil.rmtree(folder / "unpacked")
    return path


def main():
    built, to = Path(sys.argv[1]), Path(sys.argv[2])
    library = built / NAMES.get(sys.platform, NAMES["linux"])
    if not library.exists():
        sys.exit(f"{library} is missing: cargo build --release --workspace")
    print(wheel(library, to) if to.suffix == ".whl" else lay_out(library, to))


if __name__ == "__main__":
    main()
