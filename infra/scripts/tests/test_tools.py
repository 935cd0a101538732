import contextlib
import io
import os
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import tools
from scripts import commands, installs, paths
from scripts.errors import Failure


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

    def folder(self, tool: str) -> Path:
        return installs.folder(self.home, tool)


class Installs(Tools):
    def test_tool_is_installed_once(self) -> None:
        tools.install("ruff")
        tools.install("ruff")
        self.pip.assert_called_once_with(self.folder("ruff"), "ruff")

    def test_interrupted_installation_restarts(self) -> None:
        self.pip.side_effect = [Failure("no network"), None]
        with self.assertRaises(Failure):
            tools.install("ruff")
        tools.install("ruff")
        self.assertEqual(self.venvs.call_count, 2)
        self.assertTrue((self.folder("ruff") / "installed").exists())

    def test_cargo_lambda_finds_its_own_zig(self) -> None:
        tools.install("cargo-lambda")
        zig = self.folder("cargo-lambda") / "bin" / "zig"
        self.assertTrue(os.access(zig, os.X_OK))
        self.assertIn(f'"{self.folder("cargo-lambda")}/bin/python" -m ziglang "$@"', zig.read_text())


class Locks(Tools):
    def setUp(self) -> None:
        super().setUp()
        self.quietly = self.enterContext(mock.patch.object(commands, "quietly"))
        self.enterContext(mock.patch.object(tools, "say"))

    def test_locks_are_written_by_locked_uv(self) -> None:
        tools.lock(["ruff"])
        command = self.quietly.call_args.args[0]
        self.assertEqual(command[0], self.folder("uv") / "bin" / "uv")
        self.assertIn("--generate-hashes", command)
        self.assertEqual(command[-2:], [paths.REQUIREMENTS / "ruff.txt", paths.REQUIREMENTS / "ruff.in"])

    def test_all_locks_are_written_by_default(self) -> None:
        tools.lock([])
        written = [call.args[0][-1].stem for call in self.quietly.call_args_list]
        self.assertEqual(written, sorted(file.stem for file in paths.REQUIREMENTS.glob("*.in")))

    def test_empty_lock_is_not_written(self) -> None:
        with self.assertRaisesRegex(Failure, "^infra/requirements/rough.in does not exist; expected one of "):
            tools.lock(["ruff", "rough"])
        self.quietly.assert_not_called()


class Paths(Tools):
    def test_path_begins_with_tools_in_order(self) -> None:
        expected = [str(self.folder("sam") / "bin"), str(self.folder("ruff") / "bin"), "/usr/bin"]
        self.assertEqual(tools.path(["sam", "ruff"]).split(os.pathsep), expected)

    def test_unknown_tool_prevents_installation(self) -> None:
        with self.assertRaisesRegex(Failure, "^unknown tool sum; expected one of cfn-lint, "):
            tools.path(["ruff", "sum"])
        self.pip.assert_not_called()


class Arguments(Tools):
    def main(self, *arguments: str) -> int:
        with contextlib.redirect_stderr(io.StringIO()):
            return tools.main(list(arguments))

    def test_run_replaces_the_process(self) -> None:
        def replaced(program: str, command: Sequence[str]) -> None:
            self.assertEqual((program, command), ("ruff", ["ruff", "check", "--", "a"]))
            self.assertTrue(os.environ["PATH"].startswith(str(self.folder("ruff"))))
            raise SystemExit(0)

        with mock.patch.object(os, "execvp", side_effect=replaced), self.assertRaises(SystemExit):
            self.main("run", "ruff", "--", "ruff", "check", "--", "a")

    def test_run_names_missing_command(self) -> None:
        missing = FileNotFoundError(2, "No such file or directory")
        with (
            mock.patch.object(os, "execvp", side_effect=missing),
            self.assertRaisesRegex(Failure, "^nothing could not be started: "),
        ):
            self.main("run", "ruff", "--", "nothing")

    def test_other_arguments_print_usage(self) -> None:
        for arguments in ([], ["run"], ["run", "ruff"], ["run", "ruff", "--"], ["run", "--", "ls"]):
            with self.subTest(arguments):
                self.assertEqual(self.main(*arguments), 2)
