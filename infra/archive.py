#!/usr/bin/env python3
"""Packs a program for its release.

    archive.py PROGRAM TARGET     PROGRAM is `search-import`, and TARGET the platform, as rustc names it

Writes target/archives/search-import-VERSION-TARGET.tar.gz, or a .zip for Windows, and a file with its SHA-256
checksum. An archive contains one folder with the program, the README, the changelog and the licences. Packing
the same program again results in the same bytes.
"""

import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

from scripts import console
from scripts.console import say
from scripts.errors import check
from scripts.paths import ROOT

DOCUMENTS = ("README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT")
ARCHIVES = ROOT / "target" / "archives"
PROGRAM_MODE, DOCUMENT_MODE = 0o755, 0o644
# The earliest time that a ZIP archive can have.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def version(manifest: str) -> str:
    """Returns the version of the workspace."""
    _, _, package = manifest.partition("[workspace.package]\n")
    line = next(line for line in package.splitlines() if line.startswith("version"))
    return line.split('"')[1]


def contents(program: Path, folder: str) -> list[tuple[str, bytes, int]]:
    """Returns the name, bytes and mode of each file of an archive."""
    files = [(ROOT / name, DOCUMENT_MODE) for name in DOCUMENTS]
    return [
        (f"{folder}/{file.name}", file.read_bytes(), mode) for file, mode in [(program, PROGRAM_MODE), *files]
    ]


def tar_of(files: list[tuple[str, bytes, int]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    # Neither the entries nor the compression contain the time, which would change the checksum.
    return gzip.compress(packed.getvalue(), mtime=0)


def zip_of(files: list[tuple[str, bytes, int]]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def pack(program: Path, target: str, archives: Path) -> Path:
    """Writes the archive and its checksum, and returns the path of the archive."""
    check(program.is_file(), f"{program} is not there: build it with `cargo build --release --package cli`")
    name = f"search-import-{version((ROOT / 'Cargo.toml').read_text('utf-8'))}-{target}"
    files = contents(program, name)
    is_zip = "windows" in target
    archive = archives / f"{name}{'.zip' if is_zip else '.tar.gz'}"
    archives.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(zip_of(files) if is_zip else tar_of(files))
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    Path(f"{archive}.sha256").write_text(f"{checksum}  {archive.name}\n", "utf-8")
    return archive


def main(arguments: list[str]) -> int:
    check(len(arguments) == 2, "the arguments are the path of search-import and its platform")
    archive = pack(Path(arguments[0]), arguments[1], ARCHIVES)
    say(f"{archive.relative_to(ROOT)}: {archive.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    console.start("archive", main, __doc__)
