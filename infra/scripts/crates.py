"""Installing a program from crates.io.

The hash is that of the crate's archive. The archive holds a Cargo.lock, with the hashes of all that the
program is built of, so that one hash decides about everything that is compiled and run.
"""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scripts import commands
from scripts.errors import Failure, check

# A tool that runs for seconds is worth no minutes of optimizing.
QUICK = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
}


@dataclass(frozen=True)
class Crate:
    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"


def install(crate: Crate, root: Path) -> None:
    """Builds the program of a crate into `root`/bin."""
    archive = fetch(crate)
    check_hash(crate, archive)
    # Outside the repository, or cargo would take it for a forgotten member of the workspace.
    with tempfile.TemporaryDirectory() as folder:
        commands.quietly(["tar", "-xzf", archive, "-C", folder], f"unpacking {crate}")
        built: list[str | Path] = ["--locked", "--path", Path(folder, str(crate)), "--root", root]
        environment = {**os.environ, **QUICK, "CARGO_TARGET_DIR": str(Path(folder, "target"))}
        commands.quietly(
            ["cargo", "install", "--quiet", *built], f"building {crate}", environment=environment
        )


def fetch(crate: Crate) -> Path:
    """The archive as cargo has it; `cargo info` fetches one without building anything of it."""
    commands.quietly(["cargo", "info", "--quiet", f"{crate.name}@{crate.version}"], f"fetching {crate}")
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    found = sorted(home.glob(f"registry/cache/*/{crate}.crate"))
    if not found:
        raise Failure(f"cargo did not leave {crate}.crate in {home}/registry/cache")
    return found[0]


def check_hash(crate: Crate, archive: Path) -> None:
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    check(found == crate.sha256, f"{archive} has the hash {found}, not {crate.sha256}: it is not installed")
