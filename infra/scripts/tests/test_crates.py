import contextlib
import dataclasses
import hashlib
import os
import tarfile
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from scripts import commands, crates
from scripts.crates import Crate
from scripts.errors import Failure


class Crates(unittest.TestCase):
    """With a home for cargo that has the archive of one crate, and nothing that is run."""

    def setUp(self) -> None:
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, {"CARGO_HOME": str(self.home)}))
        self.quietly = self.enterContext(mock.patch.object(commands, "quietly"))
        self.archive = self.home / "registry" / "cache" / "index" / "tool-1.2.3.crate"
        self.archive.parent.mkdir(parents=True)
        with tarfile.open(self.archive, "w:gz"):
            pass
        self.crate = Crate("tool", "1.2.3", hashlib.sha256(self.archive.read_bytes()).hexdigest())

    def commands(self) -> list[list[str]]:
        return [[str(part) for part in call.args[0]] for call in self.quietly.call_args_list]

    def test_are_built_from_the_archive_with_its_own_lock(self) -> None:
        crates.install(self.crate, Path("/root"))
        fetch, unpack, install = self.commands()
        self.assertEqual(fetch, ["cargo", "info", "--quiet", "tool@1.2.3"])
        self.assertEqual(unpack[:3], ["tar", "-xzf", str(self.archive)])
        self.assertEqual(install[:2], ["cargo", "install"])
        self.assertIn("--locked", install)
        self.assertEqual(install[install.index("--path") + 1], f"{unpack[-1]}/tool-1.2.3")

    def test_with_another_hash_are_refused_before_anything_of_them_runs(self) -> None:
        wrong = dataclasses.replace(self.crate, sha256="0" * 64)
        with self.assertRaisesRegex(Failure, r"tool-1\.2\.3\.crate has the hash .*, not 0{64}: it is not"):
            crates.install(wrong, Path("/root"))
        self.assertEqual(self.commands(), [["cargo", "info", "--quiet", "tool@1.2.3"]])

    def test_that_cargo_does_not_have_are_a_failure(self) -> None:
        self.archive.unlink()
        with self.assertRaisesRegex(Failure, r"^cargo did not leave tool-1\.2\.3\.crate in "):
            crates.install(self.crate, Path("/root"))

    def test_leave_nothing_behind_but_the_program(self) -> None:
        folders: list[Path] = []

        def run(command: Sequence[Any], what: str, **_options: Any) -> None:
            if what.startswith("building"):
                folders.append(Path(command[command.index("--path") + 1]).parent)
                raise Failure(what)

        self.quietly.side_effect = run
        with contextlib.suppress(Failure):
            crates.install(self.crate, Path("/root"))
        self.assertEqual([folder.exists() for folder in folders], [False])
