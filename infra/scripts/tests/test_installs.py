import tempfile
import unittest
from pathlib import Path
from unittest import mock

from scripts import commands, installs
from scripts.errors import Failure


class Once(unittest.TestCase):
    def setUp(self) -> None:
        self.mark = Path(self.enterContext(tempfile.TemporaryDirectory())) / "mark"
        self.say = self.enterContext(mock.patch.object(installs, "say"))

    def test_what_is_installed_stays(self) -> None:
        install = mock.Mock()
        installs.once(self.mark, "a tool", install)
        installs.once(self.mark, "a tool", install)
        install.assert_called_once_with()
        self.say.assert_called_once_with("installing a tool (once)")

    def test_what_was_interrupted_begins_anew(self) -> None:
        install = mock.Mock(side_effect=[KeyboardInterrupt(), Failure("no network"), None])
        for error in (KeyboardInterrupt, Failure):
            with self.assertRaises(error):
                installs.once(self.mark, "a tool", install)
            self.assertFalse(self.mark.exists())
        installs.once(self.mark, "a tool", install)
        self.assertTrue(self.mark.exists())

    def test_there_is_no_mark_before_it_is_done(self) -> None:
        installs.once(self.mark, "a tool", lambda: self.assertFalse(self.mark.exists()))


class Pip(unittest.TestCase):
    def test_a_requirement_has_a_hash_for_each_platform(self) -> None:
        expected = "a==1 --hash=sha256:00 --hash=sha256:11\n"
        self.assertEqual(installs.requirement("a==1", ["00", "11"]), expected)

    def test_installs_nothing_but_the_hashed_wheel(self) -> None:
        with mock.patch.object(commands, "quietly") as quietly:
            installs.pip_hashed(Path("/venv"), "a", "a==1", ["00"])
        command = quietly.call_args.args[0]
        self.assertEqual(command[0], Path("/venv/bin/python"))
        for option in ("--no-deps", "--only-binary=:all:", "--require-hashes"):
            self.assertIn(option, command)

    def test_a_virtual_environment_replaces_what_is_there(self) -> None:
        with mock.patch.object(commands, "quietly") as quietly:
            installs.create_venv(Path("/venv"))
        self.assertIn("--clear", quietly.call_args.args[0])


class Commands(unittest.TestCase):
    def test_the_last_line_comes_first(self) -> None:
        self.assertEqual(commands.summary("one\n\ntwo\nthree\n"), "three\none\ntwo")

    def test_the_summary_ends(self) -> None:
        lines = commands.summary("\n".join(str(number) for number in range(100))).splitlines()
        self.assertEqual((lines[0], lines[1], lines[-1], len(lines)), ("99", "85", "98", 15))

    def test_a_silent_program_has_a_summary(self) -> None:
        self.assertEqual(commands.summary("\n"), "no output")

    def test_a_program_that_is_not_there_is_a_failure(self) -> None:
        for run in (commands.openly, commands.output):
            with self.assertRaisesRegex(Failure, "/no-such-program could not be started"):
                run(["/no-such-program"])

    def test_a_program_that_fails_is_named(self) -> None:
        with self.assertRaisesRegex(Failure, "^sh -c exit 3 ended with 3$"):
            commands.output(["sh", "-c", "exit 3", "more"])
        with self.assertRaisesRegex(Failure, "^it failed: broken$"):
            commands.quietly(["sh", "-c", "echo broken >&2; exit 3"], "it")
