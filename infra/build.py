#!/usr/bin/env python3
"""Builds the functions for `sam deploy`, and packs each into a zip.

    tools.py run sam cargo-lambda -- build.py [arm64|x86_64]

`sam build` compiles them into .aws-sam, which `sam deploy` uses. The zips in target/zips are for other ways
of deployment; each has a bill of materials next to it (scripts/sbom.py). The builds are reproducible:
RUSTFLAGS, which the Makefile sets, remove the paths of the checkout and of cargo's home, and all entries of a
zip have the same time.
"""

import hashlib
import os
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts import commands, console, sbom, stamp
from scripts.errors import check
from scripts.paths import ROOT

BUILT = ROOT / ".aws-sam" / "build"
ZIPS = ROOT / "target" / "zips"
# The maximum size, because Lambda fetches the archive at a cold start (docs/decisions/0016).
LIMIT_BYTES = 10_000_000
TARGETS = {"arm64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}
# The earliest time that a zip can express.
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Packed:
    name: str
    program_bytes: int
    zip_bytes: int
    sha256: str

    def __str__(self) -> str:
        sizes = f"{self.program_bytes / 1e6:6.2f} MB  zipped {self.zip_bytes / 1e6:5.2f} MB"
        return f"{self.name:<18} {sizes}  sha256 {self.sha256}"


def check_toolchain(architecture: str) -> None:
    check(architecture in TARGETS, f"unknown processor {architecture}; expected one of {', '.join(TARGETS)}")
    sysroot = Path(commands.output(["rustc", "--print", "sysroot"]).strip())
    target = TARGETS[architecture]
    present = (sysroot / "lib" / "rustlib" / target).is_dir()
    check(present, f"this toolchain does not build for {architecture}: rustup target add {target}")


def compile_all(architecture: str) -> None:
    command = ["sam", "build", "--parameter-overrides", f"Architecture={architecture}"]
    commands.openly(command, {**os.environ, "SAM_CLI_TELEMETRY": "0"})


def function_name(logical: str) -> str:
    """Converts the name of a resource to that of its program: RunSaga becomes run-saga."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", logical).lower()


def compress(program: Path, archive: Path) -> None:
    """Writes a zip with one entry, whose bytes depend only on the program."""
    entry = zipfile.ZipInfo("bootstrap", EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    # Created on Unix, readable and executable by all users.
    entry.create_system = 3
    entry.external_attr = 0o100755 << 16
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(entry, program.read_bytes(), compresslevel=9)


def pack(program: Path, zips: Path, materials: sbom.Build) -> Packed:
    name = function_name(program.parent.name)
    archive = zips / f"{name}.zip"
    compress(program, archive)
    (zips / f"{name}.cdx.json").write_text(sbom.text(name, program.read_bytes(), materials), "utf-8")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return Packed(name, program.stat().st_size, archive.stat().st_size, digest)


def check_sizes(packed: Iterable[Packed]) -> None:
    too_large = [each.name for each in packed if each.zip_bytes > LIMIT_BYTES]
    check(not too_large, f"larger than {LIMIT_BYTES / 1e6:.0f} MB: {', '.join(too_large)}")


def build(architecture: str) -> None:
    check_toolchain(architecture)
    sources = stamp.fingerprint()
    compile_all(architecture)
    ZIPS.mkdir(parents=True, exist_ok=True)
    materials = sbom.read_build(TARGETS[architecture])
    packed = []
    for program in sorted(BUILT.glob("*/bootstrap")):
        packed.append(pack(program, ZIPS, materials))
        print(packed[-1], flush=True)
    check_sizes(packed)
    stamp.write(sources, architecture)


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            build("arm64")
        case [architecture]:
            build(architecture)
        case _:
            return console.usage(__doc__)
    return 0


if __name__ == "__main__":
    console.start("build", main, __doc__)
