"""Tests of the start of a program."""

import subprocess
import sys
import unittest

from scripts.paths import ROOT


class Help(unittest.TestCase):
    def test_help_is_printed_without_running(self) -> None:
        programs = [path for path in sorted((ROOT / "infra").glob("*.py")) if "__main__" in path.read_text()]
        for program in programs:
            with self.subTest(program=program.name):
                command = [sys.executable, str(program), "--help"]
                called = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(called.returncode, 0, called.stderr)
                self.assertIn(program.name, called.stdout)


if __name__ == "__main__":
    unittest.main()
