import json
import tempfile
import unittest
from pathlib import Path

import versions
from scripts.errors import Failure
from versions import Figure, Program


def rounds(*values: float, larger_is_better: bool = True) -> list[dict[str, Figure]]:
    return [{"speed": Figure(value, larger_is_better)} for value in values]


class Verdicts(unittest.TestCase):
    def test_slow_result_is_found(self) -> None:
        (verdict,) = versions.verdicts(rounds(100, 102, 98), rounds(80, 82, 81))
        self.assertAlmostEqual(verdict.worse, 100 / 81)
        self.assertTrue(verdict.is_slower(15))
        self.assertIn("SLOWER", verdict.line(15))

    def test_long_time_equals_low_speed(self) -> None:
        (verdict,) = versions.verdicts(rounds(10, larger_is_better=False), rounds(12, larger_is_better=False))
        self.assertTrue(verdict.is_slower(15))
        self.assertFalse(verdict.is_slower(21))

    def test_faster_or_equal_result_passes(self) -> None:
        for after in (100.0, 300.0, 90.0):
            (verdict,) = versions.verdicts(rounds(100), rounds(after))
            self.assertFalse(verdict.is_slower(15), after)

    def test_one_disturbed_round_is_ignored(self) -> None:
        (verdict,) = versions.verdicts(rounds(100, 100, 100), rounds(20, 101, 99))
        self.assertFalse(verdict.is_slower(15))

    def test_additional_call_is_slower(self) -> None:
        calls = [rounds(value, larger_is_better=False) for value in (0.0, 1.0)]
        self.assertTrue(versions.verdicts(calls[0], calls[1])[0].is_slower(15))
        self.assertFalse(versions.verdicts(calls[0], calls[0])[0].is_slower(15))

    def test_only_common_figures_are_compared(self) -> None:
        after = [{**each, "new": Figure(1, True)} for each in rounds(100)]
        self.assertEqual([each.name for each in versions.verdicts(rounds(100), after)], ["speed"])


class Programs(unittest.TestCase):
    """Tests with stand-ins for `dev` that print the output of a benchmark."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(setattr, versions, "HOME", versions.HOME)
        versions.HOME = self.folder

    def program(self, name: str, script: str) -> Program:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return Program(path, set())

    def printing(self, name: str, per_second: float) -> Program:
        report = json.dumps({"per_second": per_second, "p50_ms": 1.0})
        return self.program(name, f"echo '{report}'")

    def test_slow_program_is_named(self) -> None:
        found = versions.compare(self.printing("old", 100), self.printing("new", 80), ["saga"], 3)
        slower = [each.name for each in found if each.is_slower(15)]
        self.assertEqual(slower, ["saga: messages a second"])

    def test_figures_missing_in_old_program_are_omitted(self) -> None:
        old = self.program("old", "echo 'unrecognized subcommand' >&2; exit 2")
        self.assertEqual(versions.compare(old, self.printing("new", 1), ["saga"], 2), [])
        other = self.program("other", "echo '{}'")
        self.assertEqual(versions.compare(other, self.printing("new", 1), ["saga"], 2), [])

    def test_figure_missing_in_new_program_is_an_error(self) -> None:
        new = self.program("new", "exit 2")
        with self.assertRaisesRegex(Failure, "has no such benchmark any more"):
            versions.compare(self.printing("old", 1), new, ["saga"], 1)

    def test_failing_program_is_an_error(self) -> None:
        broken = self.program("broken", "echo 'no disk' >&2; exit 1")
        with self.assertRaisesRegex(Failure, "no disk"):
            versions.compare(broken, broken, ["saga"], 1)

    def test_exceeded_bound_hides_no_figure(self) -> None:
        report = json.dumps({"rows": [{"idle_us": 1.0, "due_us": 2.0}]})
        slow = self.program("slow", f"echo '{report}'; exit 1")
        found = versions.compare(slow, slow, ["sweep"], 1)
        self.assertEqual([each.name for each in found], ["sweep: idle_us", "sweep: due_us"])


if __name__ == "__main__":
    unittest.main()
