"""Writes the bill of materials of a function, a list of its crates in CycloneDX 1.5 (https://cyclonedx.org).

The crates are those of `cargo tree`, with the features and the processor of the build. Tools that use `cargo
metadata` list more crates, because it unites the features of the whole workspace. Checksums are those of
Cargo.lock.

All functions are programs of the crate `functions`, so they have the same list, although the linker omits
code that a program does not call. C code in a crate (AWS-LC in aws-lc-sys, SQLite in libsqlite3-sys) is
listed as that crate. The output is reproducible: it contains no time, and its serial number derives from its
content.
"""

import hashlib
import json
import re
import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from scripts import commands
from scripts.errors import check
from scripts.paths import ROOT

PACKAGE = ["--package", "functions", "--features", "lambda"]
# Crates that are compiled into the program, and procedural macros, which run only during compilation.
NORMAL = "normal"
LINKED = "normal,no-proc-macro"
LINE = re.compile(
    r"(?P<depth>\d+)(?P<name>\S+) v(?P<version>\S+)(?: \([^\t]*\))?\t(?P<license>.*?)(?: \(\*\))?"
)

Json = dict[str, Any]


@dataclass(frozen=True, order=True)
class Crate:
    name: str
    version: str


@dataclass(frozen=True)
class Tree:
    """The crates with their licenses, which may be empty, and their dependencies."""

    licenses: Mapping[Crate, str]
    needs: Mapping[Crate, set[Crate]]


@dataclass(frozen=True)
class Build:
    """The common part of all functions."""

    target: str
    compiler: str
    tree: Tree
    linked: Tree
    checksums: Mapping[Crate, str]


def read_build(target: str) -> Build:
    compiler = commands.output(["rustc", "--version"]).strip()
    tree, linked = (read_tree(target, edges) for edges in (NORMAL, LINKED))
    return Build(target, compiler, tree, linked, read_checksums(ROOT / "Cargo.lock"))


def read_tree(target: str, edges: str) -> Tree:
    command = ["cargo", "tree", "--locked", *PACKAGE, "--target", target, "--edges", edges]
    return parse_tree(commands.output([*command, "--prefix", "depth", "--format", "{p}\t{l}"]))


def parse_tree(text: str) -> Tree:
    licenses: dict[Crate, str] = {}
    needs: dict[Crate, set[Crate]] = {}
    above: list[Crate] = []
    for line in text.splitlines():
        found = LINE.fullmatch(line)
        check(found is not None, f"cargo tree printed a line that is not understood: {line!r}")
        assert found
        crate = Crate(found["name"], found["version"])
        licenses[crate] = found["license"]
        needs.setdefault(crate, set())
        del above[int(found["depth"]) :]
        if above:
            needs[above[-1]].add(crate)
        above.append(crate)
    return Tree(licenses, needs)


def read_checksums(lock: Path) -> dict[Crate, str]:
    """Returns the checksums of the crates from a registry. Our own crates have none."""
    packages = tomllib.loads(lock.read_text("utf-8"))["package"]
    return {Crate(each["name"], each["version"]): each["checksum"] for each in packages if "checksum" in each}


def purl(crate: Crate, build: Build) -> str:
    """Returns the package URL, which distinguishes our crates from crates of that name on crates.io."""
    kind = "cargo" if crate in build.checksums else "generic/search-import"
    return f"pkg:{kind}/{quote(crate.name, safe='')}@{quote(crate.version, safe='')}"


def expression(text: str) -> str:
    """Returns the license in SPDX syntax. Some crates still write a slash for OR."""
    return re.sub(r"\s*/\s*", " OR ", text)


def sha256(digest: str) -> list[Json]:
    return [{"alg": "SHA-256", "content": digest}]


def component(crate: Crate, build: Build) -> Json:
    found: Json = {
        "type": "library",
        "bom-ref": purl(crate, build),
        "name": crate.name,
        "version": crate.version,
        "scope": "required" if crate in build.linked.licenses else "excluded",
    }
    if crate in build.checksums:
        found["hashes"] = sha256(build.checksums[crate])
    if build.tree.licenses[crate]:
        found["licenses"] = [{"expression": expression(build.tree.licenses[crate])}]
    return {**found, "purl": purl(crate, build)}


def dependencies(build: Build) -> list[Json]:
    needs = {purl(crate, build): needed for crate, needed in build.tree.needs.items()}
    return [
        {"ref": ref, "dependsOn": sorted(purl(crate, build) for crate in needs[ref])} for ref in sorted(needs)
    ]


def bill(name: str, program: bytes, build: Build) -> Json:
    [root] = set(build.tree.needs) - set().union(*build.tree.needs.values())
    content: Json = {
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": name,
                "name": name,
                "version": root.version,
                "hashes": sha256(hashlib.sha256(program).hexdigest()),
            },
            "properties": [
                {"name": "cdx:rustc:sbom:target:triple", "value": build.target},
                # The program also contains Rust's standard library.
                {"name": "search-import:rustc", "value": build.compiler},
            ],
        },
        "components": [component(crate, build) for crate in sorted(build.tree.licenses)],
        "dependencies": [{"ref": name, "dependsOn": [purl(root, build)]}, *dependencies(build)],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
    }
    return {**head, **content}


def text(name: str, program: bytes, build: Build) -> str:
    """Returns the SBOM of the function `name`, whose program consists of these bytes."""
    return json.dumps(bill(name, program, build), indent=1, ensure_ascii=False) + "\n"
