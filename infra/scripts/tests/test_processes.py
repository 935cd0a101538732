import os
import signal
import socket
import unittest
from unittest import mock

from scripts.errors import Failure
from scripts.servers import launch, mongod, processes
from scripts.servers.state import Running

STAT = "77 (a) b (c) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1000"


class Births(unittest.TestCase):
    def test_are_the_twentieth_field_after_the_name(self) -> None:
        self.assertEqual(processes.born_by_stat(STAT), "4242")

    def test_a_zombie_has_none(self) -> None:
        self.assertIsNone(processes.born_by_stat(STAT.replace(" S ", " Z ")))

    def test_this_process_lives(self) -> None:
        self.assertTrue(processes.is_alive(os.getpid(), processes.born(os.getpid())))

    def test_another_with_the_same_number_is_not_it(self) -> None:
        self.assertFalse(processes.is_alive(os.getpid(), "before"))

    def test_one_that_was_gone_before_it_was_asked_does_not_live(self) -> None:
        with mock.patch.object(processes, "born", return_value=None):
            self.assertFalse(processes.is_alive(os.getpid(), None))


class Ends(unittest.TestCase):
    def test_a_signal_is_128_and_its_number(self) -> None:
        self.assertEqual([processes.exit_code(code) for code in (0, 7, -signal.SIGKILL)], [0, 7, 137])

    def test_a_process_that_is_not_ours_is_left(self) -> None:
        with mock.patch.object(os, "killpg") as kill:
            processes.end(os.getpid(), "before")
        kill.assert_not_called()

    def test_a_process_that_heeds_the_first_signal_gets_no_second(self) -> None:
        alive = iter([True, False, False, False])
        with (
            mock.patch.object(processes, "is_alive", side_effect=alive),
            mock.patch.object(os, "killpg") as kill,
        ):
            processes.end(77, "birth")
        kill.assert_called_once_with(77, signal.SIGTERM)

    def test_a_command_that_is_not_there_is_a_failure(self) -> None:
        with self.assertRaisesRegex(Failure, "no-such-program could not be started"):
            processes.supervise(["/no-such-program"], {})


class Ports(unittest.TestCase):
    def test_can_be_bound(self) -> None:
        port = launch.free_port()
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))
        self.assertGreater(port, 1023)

    def test_one_that_is_taken_is_not_chosen(self) -> None:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            self.assertNotIn(server.getsockname()[1], [launch.free_port() for _ in range(20)])


class Readiness(unittest.TestCase):
    def test_whatever_a_server_answers_wrongly_means_not_yet(self) -> None:
        running = Running(1, "birth", 5, "/data", "mongod")
        for error in (ConnectionRefusedError(), TimeoutError(), ValueError("a document is cut off")):
            with self.subTest(error), mock.patch("scripts.servers.mongo.run", side_effect=error):
                self.assertFalse(launch.is_ready(mongod.SERVER, running))
