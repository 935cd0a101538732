#!/usr/bin/env python3
"""Builds the functions as `sam deploy` takes them, and packs each into a zip of its own.

    tools.py run sam cargo-lambda -- build.py [arm64|x86_64]

`sam build` compiles them into .aws-sam, from where `sam deploy` goes on; the zips, in target/zips, are for whoever
deploys otherwise. What differs between machines is kept out of both: the paths of the checkout and of cargo's home by
RUSTFLAGS, which the Makefile sets, and the time by giving every entry of a zip the same.
"""

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from services import Failure

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / ".aws-sam" / "build"
ZIPS = ROOT / "target" / "zips"
# What Lambda has to fetch at a cold start (docs/decisions/0016).
LIMIT_BYTES = 8_000_000
TARGETS = {"arm64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}
# The first time that a zip can express.
EPOCH = (1980, 1, 1, 0, 0, 0)


def check_toolchain(architecture):
    if architecture not in TARGETS:
        raise Failure(f"there is no processor {architecture}, only {', '.join(TARGETS)}")
    answer = subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    target = TARGETS[architecture]
    if not (Path(answer.stdout.strip()) / "lib" / "rustlib" / target).is_dir():
        raise Failure(f"this toolchain does not build for {architecture}: rustup target add {target}")


def compile_all(architecture):
    command = ["sam", "build", "--parameter-overrides", f"Architecture={architecture}"]
    if subprocess.run(command, cwd=ROOT, env={**os.environ, "SAM_CLI_TELEMETRY": "0"}).returncode != 0:
        raise Failure("the functions could not be built")


def pack(program, archive):
    """One entry, whose bytes depend on the program alone."""
    entry = zipfile.ZipInfo("bootstrap", EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    # Made on Unix, a file that everybody may read and run.
    entry.create_system = 3
    entry.external_attr = 0o100755 << 16
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(entry, program.read_bytes(), compresslevel=9)


def main(architecture):
    check_toolchain(architecture)
    compile_all(architecture)
    ZIPS.mkdir(parents=True, exist_ok=True)
    too_large = []
    for program in sorted(BUILT.glob("*/bootstrap")):
        # RunSaga becomes run-saga.
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", program.parent.name).lower()
        archive = ZIPS / f"{name}.zip"
        pack(program, archive)
        size, digest = archive.stat().st_size, hashlib.sha256(archive.read_bytes()).hexdigest()
        print(f"{name:<18} {program.stat().st_size / 1e6:6.2f} MB  zipped {size / 1e6:5.2f} MB  sha256 {digest}")
        if size > LIMIT_BYTES:
            too_large.append(name)
    if too_large:
        raise Failure(f"larger than {LIMIT_BYTES / 1e6:.0f} MB: {', '.join(too_large)}")


if __name__ == "__main__":
    try:
        main(*(sys.argv[1:] or ["arm64"]))
    except (Failure, subprocess.CalledProcessError) as failure:
        print(f"build: {failure}", file=sys.stderr)
        sys.exit(1)
