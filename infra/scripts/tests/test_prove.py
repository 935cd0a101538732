import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import prove
from scripts import commands
from scripts.errors import Failure
from scripts.paths import ROOT


class Totals(unittest.TestCase):
    def test_total_is_last_matching_line(self) -> None:
        nextest = "a\n     Summary [ 310.224s] 1450 tests run: 1450 passed, 1 skipped\nwarning: done\n"
        self.assertIn("1450 tests run: 1450 passed", prove.totals(nextest))
        done = "Done 3675 runs in 3601 second(s)"
        self.assertEqual(prove.totals(f"#5 x\n{done}\n"), done)

    def test_total_of_failing_command_is_last_line(self) -> None:
        self.assertEqual(prove.totals("first\nmake: *** [test] Error 2\n"), "make: *** [test] Error 2")


class Records(unittest.TestCase):
    def test_record_keeps_results_of_other_steps(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "proof.json")
            prove.record(path, "tests", {"passed": True})
            prove.record(path, "packed", {"passed": False})
            prove.record(path, "tests", {"passed": False})
            known = json.loads(path.read_text("utf-8"))
        self.assertEqual(known, {"tests": {"passed": False}, "packed": {"passed": False}})


class Steps(unittest.TestCase):
    def test_every_fuzz_target_is_a_step(self) -> None:
        targets = {file.stem for file in ROOT.glob("tests/fuzz/fuzz_targets/*.rs")}
        self.assertEqual(targets, {name for name, step in prove.steps().items() if "fuzz" in step.command})

    def test_every_test_belongs_to_one_step(self) -> None:
        filters = [step.command[-1] for step in prove.steps().values() if "PROFILE=deep" in step.command]
        *chosen, others = (text.removeprefix("TESTS=") for text in filters)
        self.assertEqual(others, f"not ({' | '.join(chosen)})")

    def test_workflow_runs_every_step(self) -> None:
        workflow = Path(ROOT, ".github", "workflows", "prove.yml").read_text("utf-8")
        self.assertIn(f"step: [{', '.join(prove.steps())}]", workflow)


class Running(unittest.TestCase):
    def setUp(self) -> None:
        self.ran = self.enterContext(mock.patch.object(prove, "run", return_value={"passed": True}))
        self.enterContext(mock.patch.object(prove, "record"))
        self.tools = self.enterContext(mock.patch.object(commands, "quietly"))

    def test_missing_tool_is_reported_before_first_step(self) -> None:
        def quietly(command: list[str], _what: str) -> None:
            if "fuzz" in command:
                raise Failure("fuzzing needs cargo-fuzz")

        self.tools.side_effect = quietly
        with self.assertRaisesRegex(Failure, "needs cargo-fuzz"):
            prove.main(["tests", "packed"])
        self.ran.assert_not_called()

    def test_other_steps_run_after_failed_one(self) -> None:
        self.ran.side_effect = [{"passed": False}, {"passed": True}]
        with self.assertRaisesRegex(Failure, "^these proofs failed: tests$"):
            prove.main(["tests", "api"])
        self.assertEqual([call.args[0] for call in self.ran.call_args_list], ["tests", "api"])
