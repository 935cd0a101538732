import os
import signal
import socket
import unittest
from unittest import mock

from scripts.errors import Failure
from scripts.servers import dynamodb, launch, processes
from scripts.servers.state import Running

STAT = "77 (a) b (c) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1000"


class Births(unittest.TestCase):
    def test_start_time_is_twentieth_field(self) -> None:
        self.assertEqual(processes.born_by_stat(STAT), "4242")

    def test_zombie_has_no_start_time(self) -> None:
        self.assertIsNone(processes.born_by_stat(STAT.replace(" S ", " Z ")))

    def test_current_process_is_alive(self) -> None:
        self.assertTrue(processes.is_alive(os.getpid(), processes.born(os.getpid())))

    def test_reused_process_id_is_distinguished(self) -> None:
        self.assertFalse(processes.is_alive(os.getpid(), "before"))

    def test_vanished_process_is_not_alive(self) -> None:
        with mock.patch.object(processes, "born", return_value=None):
            self.assertFalse(processes.is_alive(os.getpid(), None))


class Ends(unittest.TestCase):
    def test_exit_code_of_signal_is_128_plus_number(self) -> None:
        self.assertEqual([processes.exit_code(code) for code in (0, 7, -signal.SIGKILL)], [0, 7, 137])

    def test_foreign_process_is_not_signalled(self) -> None:
        with mock.patch.object(os, "killpg") as kill:
            processes.end(os.getpid(), "before")
        kill.assert_not_called()

    def test_terminated_process_receives_one_signal(self) -> None:
        alive = iter([True, False, False, False])
        with (
            mock.patch.object(processes, "is_alive", side_effect=alive),
            mock.patch.object(os, "killpg") as kill,
        ):
            processes.end(77, "birth")
        kill.assert_called_once_with(77, signal.SIGTERM)

    def test_missing_command_is_a_failure(self) -> None:
        with self.assertRaisesRegex(Failure, "no-such-program could not be started"):
            processes.supervise(["/no-such-program"], {})


class Ports(unittest.TestCase):
    def test_chosen_port_is_bindable(self) -> None:
        port = launch.free_port()
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))
        self.assertGreater(port, 1023)

    def test_port_in_use_is_not_chosen(self) -> None:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            self.assertNotIn(server.getsockname()[1], [launch.free_port() for _ in range(20)])


class Readiness(unittest.TestCase):
    def test_wrong_response_means_not_ready(self) -> None:
        running = Running(1, "birth", 5, "/data", "java")
        for error in (ConnectionRefusedError(), TimeoutError(), ValueError("a port is out of range")):
            with self.subTest(error), mock.patch("urllib.request.urlopen", side_effect=error):
                self.assertFalse(launch.is_ready(dynamodb.SERVER, running))
