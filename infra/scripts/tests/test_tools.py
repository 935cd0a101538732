import contextlib
import io
import os
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import tools
from scripts import installs, paths
from scripts.errors import Failure

PYTHON = f"py{sys.version_info.major}.{sys.version_info.minor}"


class Tools(unittest.TestCase):
    def setUp(self) -> None:
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(paths, "TOOLS", self.home))
        self.enterContext(mock.patch.object(installs, "say"))
        self.enterContext(mock.patch.dict(os.environ, {"PATH": "/usr/bin"}))
        self.venvs = self.enterContext(mock.patch.object(installs, "create_venv", side_effect=self.create))
        self.pip = self.enterContext(mock.patch.object(installs, "pip"))

    def create(self, folder: Path) -> None:
        (folder / "bin").mkdir(parents=True, exist_ok=True)


class Folders(Tools):
    def test_name_the_tools_version_and_pythons(self) -> None:
        with mock.patch.dict(tools.TOOLS, {"a-tool": ["a-tool==1.2.3", "other==4"]}):
            self.assertEqual(tools.folder("a-tool"), self.home / f"a-tool-1.2.3-{PYTHON}")

    def test_every_version_is_pinned(self) -> None:
        for tool, packages in tools.TOOLS.items():
            for package in packages:
                with self.subTest(tool):
                    self.assertRegex(package, r"^[a-z-]+==\d+(\.\d+)+$")


class Installs(Tools):
    def test_are_made_once(self) -> None:
        tools.install("ruff")
        tools.install("ruff")
        self.pip.assert_called_once_with(tools.folder("ruff"), "ruff", tools.TOOLS["ruff"])

    def test_begin_anew_when_they_were_interrupted(self) -> None:
        self.pip.side_effect = [Failure("no network"), None]
        with self.assertRaises(Failure):
            tools.install("ruff")
        tools.install("ruff")
        self.assertEqual(self.venvs.call_count, 2)
        self.assertTrue((tools.folder("ruff") / "installed").exists())

    def test_cargo_lambda_finds_its_own_zig(self) -> None:
        tools.install("cargo-lambda")
        zig = tools.folder("cargo-lambda") / "bin" / "zig"
        self.assertTrue(os.access(zig, os.X_OK))
        self.assertIn(f'"{tools.folder("cargo-lambda")}/bin/python" -m ziglang "$@"', zig.read_text())


class Paths(Tools):
    def test_begin_with_the_tools_in_their_order(self) -> None:
        expected = [str(tools.folder("sam") / "bin"), str(tools.folder("ruff") / "bin"), "/usr/bin"]
        self.assertEqual(tools.path(["sam", "ruff"]).split(os.pathsep), expected)

    def test_nothing_is_installed_beside_a_tool_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(Failure, "^there is no tool sum, only cfn-lint, "):
            tools.path(["ruff", "sum"])
        self.pip.assert_not_called()


class Arguments(Tools):
    def main(self, *arguments: str) -> tuple[int, str]:
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()),
        ):
            return tools.main(list(arguments)), out.getvalue()

    def test_path_prints_it(self) -> None:
        self.assertEqual(self.main("path", "ruff"), (0, f"{tools.folder('ruff')}/bin:/usr/bin\n"))

    def test_run_becomes_the_command(self) -> None:
        def replaced(program: str, command: Sequence[str]) -> None:
            self.assertEqual((program, command), ("ruff", ["ruff", "check", "--", "a"]))
            self.assertTrue(os.environ["PATH"].startswith(str(tools.folder("ruff"))))
            raise SystemExit(0)

        with mock.patch.object(os, "execvp", side_effect=replaced), self.assertRaises(SystemExit):
            self.main("run", "ruff", "--", "ruff", "check", "--", "a")

    def test_run_says_which_command_is_not_there(self) -> None:
        missing = FileNotFoundError(2, "No such file or directory")
        with (
            mock.patch.object(os, "execvp", side_effect=missing),
            self.assertRaisesRegex(Failure, "^nothing could not be started: "),
        ):
            self.main("run", "ruff", "--", "nothing")

    def test_any_other_form_gets_the_usage(self) -> None:
        for arguments in ([], ["path"], ["run"], ["run", "ruff"], ["run", "ruff", "--"], ["run", "--", "ls"]):
            with self.subTest(arguments):
                self.assertEqual(self.main(*arguments), (2, ""))
