import tempfile
import unittest
from pathlib import Path
from typing import Any

import engines
from scripts.engines import figures, peers
from scripts.engines.figures import Cell
from scripts.engines.peers import OURS, PEERS
from scripts.errors import Failure


def found(engine: str, per_second: float, **more: Any) -> dict[str, Any]:
    plain = {"sagas": 2_000, "clients": 32, "p50_ms": 2.0, "p99_ms": 9.0, "lost": 0, "doubled": 0}
    return {**plain, "memory_mib": 50.0, "seconds": 10.0, "engine": engine, "per_second": per_second, **more}


class Figures(unittest.TestCase):
    def test_median_and_spread_are_reported(self) -> None:
        summary = figures.summary([found(OURS, speed) for speed in (900.0, 100.0, 800.0)])
        self.assertEqual((summary.least, summary.per_second, summary.most), (100.0, 800.0, 900.0))

    def test_one_losing_round_is_reported(self) -> None:
        summary = figures.summary([found(OURS, 1.0), found(OURS, 1.0, lost=3, doubled=1), found(OURS, 1.0)])
        self.assertEqual((summary.lost, summary.doubled), (3, 1))

    def test_cells_are_separate(self) -> None:
        rounds = [found(OURS, 1.0), found(OURS, 2.0, clients=64), found("restate", 3.0), found(OURS, 4.0)]
        cells = figures.summaries(rounds)
        self.assertEqual(
            list(cells), [Cell(2_000, 32, OURS), Cell(2_000, 64, OURS), Cell(2_000, 32, "restate")]
        )
        self.assertEqual(cells[Cell(2_000, 32, OURS)].rounds, 2)

    def test_ratio_compares_the_same_cell(self) -> None:
        rounds = [found(OURS, 5_000.0), found("restate", 1_000.0), found("restate", 100.0, clients=64)]
        lines = figures.table(figures.summaries(rounds), OURS)
        self.assertEqual(len(lines), 2 + 3)
        self.assertTrue(lines[2].endswith("|  |"), lines[2])
        self.assertIn("| restate | 1,000 | one round |", lines[3])
        self.assertTrue(lines[3].endswith("| 5.0 times |"), lines[3])
        self.assertTrue(lines[4].endswith("|  |"), "nothing of ours to compare it with")


class Runs(unittest.TestCase):
    def setUp(self) -> None:
        self.run_ = engines.Run(engines.parse(["program"]), Path())

    def test_cell_duration_depends_on_its_sagas(self) -> None:
        self.assertEqual(self.run_.expected_seconds(PEERS["restate"], 32, 2_000), 0.0)
        self.run_.found = [found("restate", 1.0, seconds=20.0), found(OURS, 1.0, seconds=1.0)]
        self.assertEqual(self.run_.expected_seconds(PEERS["restate"], 32, 20_000), 200.0)
        self.assertEqual(self.run_.expected_seconds(PEERS["restate"], 64, 20_000), 200.0)
        self.assertEqual(self.run_.expected_seconds(PEERS["restate"], 1, 20_000), 0.0)

    def test_failed_engine_is_omitted_and_reported(self) -> None:
        self.run_.options.peers = [OURS]
        with tempfile.TemporaryDirectory() as folder:
            self.run_.program = Path(folder) / "missing"
            self.run_.round(0)
        self.assertEqual(len(self.run_.left_out), 1)
        self.assertIn("ours, round 1", self.run_.left_out[0])

    def test_lost_or_doubled_event_of_ours_is_an_error(self) -> None:
        for errors in ({"lost": 1}, {"doubled": 1}):
            self.assertTrue(engines.is_wrong(found(OURS, 1.0, **errors)), errors)
            self.assertFalse(engines.is_wrong(found("restate", 1.0, **errors)), errors)
        self.assertFalse(engines.is_wrong(found(OURS, 1.0)))

    def test_choices_are_the_existing_engines(self) -> None:
        self.assertEqual(engines.parse(["program", "--peers", OURS]).peers, [OURS])
        with self.assertRaises(SystemExit):
            engines.parse(["program", "--peers", "unheard-of"])


class Peers(unittest.TestCase):
    def test_address_is_first_line_of_server(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            log.write_text("")
            with self.assertRaises(ValueError):
                peers.address(log)
            log.write_text('{"url":"http://127.0.0.1:1"}\nmore\n')
            self.assertEqual(peers.address(log), "http://127.0.0.1:1")

    def test_shared_memory_counts_once(self) -> None:
        self.assertEqual(peers.pss_kib("Rss: 900 kB\nPss:             120 kB\nPss_Anon: 100 kB\n"), 120)

    def test_absent_server_is_not_ready(self) -> None:
        self.assertFalse(peers.is_ready(peers.answers("http://127.0.0.1:9")))
        with self.assertRaises(Failure):
            peers.is_ready(lambda: (_ for _ in ()).throw(Failure("it ended")))


if __name__ == "__main__":
    unittest.main()
