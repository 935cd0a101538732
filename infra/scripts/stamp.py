"""The record of what the built functions were made of, so that no other version is deployed by mistake.

`make deploy` does not build again what is built. Without the record, it would deploy the previous template
and the previous functions after a change, and report success.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from scripts.paths import ROOT

# `sam build` empties this folder, and the record is written afterwards.
STAMP = ROOT / ".aws-sam" / "build" / "made-of.json"
# The files and folders that the template and the programs of the functions are built from.
SOURCES = ("template.yaml", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "functions", "shared")


def files(root: Path) -> Iterator[Path]:
    for name in SOURCES:
        path = root / name
        found = path.rglob("*") if path.is_dir() else [path]
        # A file manager may create hidden files at any time.
        yield from sorted(one for one in found if one.is_file() and not one.name.startswith("."))


def fingerprint(root: Path = ROOT) -> str:
    """Returns the hash of the names and contents of all sources. A checkout changes their times."""
    digest = hashlib.sha256()
    for path in files(root):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def write(sources: str, architecture: str, stamp: Path = STAMP) -> None:
    """Records the fingerprint from the beginning of a build, and its processor."""
    stamp.write_text(json.dumps({"sources": sources, "architecture": architecture}), "utf-8")


def fault(architecture: str, stamp: Path = STAMP, root: Path = ROOT) -> str | None:
    """Returns why the built functions may not be deployed for a processor, or None."""
    again = f"run `make build ARCHITECTURE={architecture}`"
    if not stamp.is_file():
        return f"nothing is built: {again}"
    found = json.loads(stamp.read_text("utf-8"))
    if found["sources"] != fingerprint(root):
        return f"the functions were built from other sources or another template.yaml: {again}"
    built = found["architecture"]
    if built != architecture:
        return f"the functions were built for {built}, and Architecture is {architecture}: {again}"
    return None
