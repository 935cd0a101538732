import json
import sys
import tempfile
import unittest
from pathlib import Path

import compare
import handler
import read

EVENTS = compare.ROOT / "tests" / "events"
EVENT = {
    "specversion": "1.0",
    "type": "search-import.SearchUploadSaved.v1",
    "correlationid": "0192d3a4-0000-7000-8000-00000000000a",
    "token": "1:00000000000a:2",
    "data": {"file_id": "f"},
}


class Handler(unittest.TestCase):
    def test_event_of_saga_is_accepted(self) -> None:
        self.assertTrue(handler.is_event(json.dumps(EVENT)))

    def test_invalid_events_are_refused_with_one_error(self) -> None:
        wrong = {
            "specversion": "2.0",
            "type": "search-import.Other.v1",
            "correlationid": "a search",
            "token": "1",
            "data": {},
        }
        for name, value in wrong.items():
            with self.subTest(name):
                self.assertFalse(handler.is_event(json.dumps({**EVENT, name: value})))
                self.assertFalse(handler.is_event(json.dumps({**EVENT, name: None})))

    def test_non_objects_are_refused(self) -> None:
        for body in ("", "[]", "null", "{}", "[" * 100_000):
            with self.subTest(body[:5]):
                self.assertFalse(handler.is_event(body))

    def test_response_names_failed_messages(self) -> None:
        records = [
            {"messageId": "good", "body": json.dumps(EVENT)},
            {"messageId": "bad", "body": "{"},
        ]
        self.assertEqual(
            handler.handle({"Records": records}), {"batchItemFailures": [{"itemIdentifier": "bad"}]}
        )

    def test_benchmark_batch_is_refused_completely(self) -> None:
        event = json.loads((EVENTS / "sqs-saga-hostile.json").read_text())
        self.assertEqual(len(handler.handle(event)["batchItemFailures"]), len(event["Records"]))


class Commands(unittest.TestCase):
    def test_commands_use_language_of_reader(self) -> None:
        file = Path("/files/10000.ris")
        python, node = (
            compare.command(compare.Peer("ris", "reader", language), file) for language in ("python", "node")
        )
        self.assertEqual(python, [sys.executable, compare.HERE / "read.py", "reader", file])
        self.assertEqual(node, ["node", compare.HERE / "read.js", file])

    def test_row_is_formatted(self) -> None:
        self.assertEqual(compare.row("ris", 10, "1.5"), "| ris | 10 | 1.5 |")

    def test_figures_of_a_failing_program_are_read(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program"
            program.write_text(
                f'#!{sys.executable}\nprint(\'{{"formats": [{{"format": "ris"}}]}}\')\nexit(1)\n'
            )
            program.chmod(0o755)
            self.assertEqual(compare.ours(program), {"ris": {"format": "ris"}})


class Reader(unittest.TestCase):
    def test_records_are_counted_in_best_run(self) -> None:
        texts: list[str] = []

        def parse(text: str) -> list[str]:
            texts.append(text)
            return text.split()

        records, seconds = read.measure(parse, "a b c")
        self.assertEqual((records, texts), (3, ["a b c"] * read.RUNS))
        self.assertGreaterEqual(seconds, 0)
