import dataclasses
import json
import os
import tempfile
import time
import unittest
from pathlib import Path

from scripts.servers import data, processes, state
from scripts.servers.state import Running, State

OURS = Running(os.getpid(), processes.born(os.getpid()), 5, "/data", "mongod")
GONE = dataclasses.replace(OURS, born="before")


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))


class StateFile(Folder):
    def setUp(self) -> None:
        super().setUp()
        self.state = State(self.folder / "services")
        self.state.home.mkdir()

    def test_state_round_trips(self) -> None:
        self.state.write({"mongod": OURS, "dynamodb": dataclasses.replace(GONE, born=None)})
        self.assertEqual(
            self.state.read(), {"mongod": OURS, "dynamodb": dataclasses.replace(GONE, born=None)}
        )

    def test_state_is_empty_without_file(self) -> None:
        self.assertEqual(self.state.read(), {})
        self.state.write({"mongod": OURS})
        self.state.clear()
        self.state.clear()
        self.assertEqual(self.state.read(), {})

    def test_unreadable_state_is_empty(self) -> None:
        for text in ("", "{", "[]", "null", '{"mongod": {}}', '{"mongod": {"pid": "1"}}'):
            with self.subTest(text):
                self.state.file.write_text(text)
                self.assertEqual(self.state.read(), {})

    def test_state_is_replaced_atomically(self) -> None:
        self.state.write({"mongod": OURS})
        self.state.write({})
        self.assertEqual([each.name for each in self.state.home.iterdir()], ["state.json"])

    def test_lock_creates_its_folder(self) -> None:
        other = State(self.folder / "a" / "b")
        with other.locked():
            self.assertTrue(other.home.is_dir())


class Records(unittest.TestCase):
    def test_record_round_trips(self) -> None:
        self.assertEqual(state.from_json(json.loads(json.dumps(state.to_json(OURS)))), OURS)

    def test_other_records_are_refused(self) -> None:
        good = state.to_json(OURS)
        bad: object
        for bad in (None, [], {}, {**good, "pid": "1"}, {**good, "born": 1}, {**good, "data": None}):
            with self.subTest(bad), self.assertRaises(ValueError):
                state.from_json(bad)


class Data(Folder):
    def make(self, name: str, record: str | None = None) -> Path:
        folder = self.folder / name
        folder.mkdir()
        if record is not None:
            (folder / data.RECORD).write_text(record)
        return folder

    def test_data_of_live_server_is_kept(self) -> None:
        folder = self.make(f"{data.PREFIX}a")
        data.record(folder, OURS)
        data.sweep(self.folder)
        self.assertTrue(folder.exists())

    def test_only_data_of_dead_servers_is_deleted(self) -> None:
        folder, foreign = self.make(f"{data.PREFIX}a"), self.make("other")
        data.record(folder, GONE)
        data.record(foreign, GONE)
        data.sweep(self.folder)
        self.assertEqual(list(self.folder.iterdir()), [foreign])

    def test_old_unrecorded_data_is_deleted(self) -> None:
        now = time.time()
        for record in (None, "", "{}"):
            folder = self.make(f"{data.PREFIX}{record}", record)
            self.assertFalse(data.is_abandoned(folder, now))
            self.assertTrue(data.is_abandoned(folder, now + data.NEW_SECONDS + 60))
