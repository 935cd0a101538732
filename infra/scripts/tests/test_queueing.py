import unittest

from scripts.queueing import Load, Service, Simulation

BUSY_MINUTE = Load(per_second=50, seconds=30, files=2)


class Queueing(unittest.TestCase):
    def test_seed_determines_the_result(self) -> None:
        first, second, other = (Simulation(BUSY_MINUTE, Service(4, 200), seed).run() for seed in (1, 1, 2))
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_every_message_is_handled_once(self) -> None:
        found = Simulation(Load(backlog=500), Service(3, 1)).run()
        self.assertEqual(found.handled, 500)

    def test_littles_law_holds_for_the_queue(self) -> None:
        found = Simulation(BUSY_MINUTE, Service(4, 200)).run()
        self.assertAlmostEqual(found.area, sum(found.waits), places=6)

    def test_concurrency_is_limited_by_executions(self) -> None:
        for saga in (1, 2, 8):
            used = Simulation(BUSY_MINUTE, Service(saga, 200)).run().utilisation(saga)
            self.assertGreater(used, 0)
            self.assertLessEqual(used, 1 + 1e-9)

    def test_doubled_workers_are_never_slower(self) -> None:
        for cores in (0, 2):
            rates = [
                Simulation(Load(backlog=400), Service(saga, 1, cores=cores, on_core=0.002)).run().per_second()
                for saga in (1, 2, 4, 8)
            ]
            self.assertEqual(rates, sorted(rates))

    def test_only_a_hot_search_is_contended(self) -> None:
        hot, cold = (Simulation(Load(backlog=100, hot=hot), Service(4, 1)).run() for hot in (True, False))
        self.assertGreater(hot.busy, 0)
        self.assertEqual((hot.handled, cold.busy), (100, 0))
