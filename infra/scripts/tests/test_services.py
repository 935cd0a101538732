import contextlib
import io
import os
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import services
from scripts import console, paths
from scripts.errors import Failure
from scripts.servers import fleet, processes
from scripts.servers.state import Running, State

MONGOD = Running(1, "a", 1001, "/data/1", "/bin/mongod")
OTHERS = {"AWS_ENDPOINT_URL": "http://mine"}


@contextlib.contextmanager
def quiet() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        yield out, err


class Arguments(unittest.TestCase):
    def setUp(self) -> None:
        self.enterContext(mock.patch.object(processes, "leave_on_signals"))
        self.called = {
            name: self.enterContext(mock.patch.object(services, name, return_value=7))
            for name in ("up", "env", "down", "run")
        }

    def test_command_is_required(self) -> None:
        for name in ("up", "env", "down"):
            self.assertEqual(services.main([name]), 0)
            self.called[name].assert_called_once()

    def test_exit_code_of_run_is_the_programs(self) -> None:
        self.assertEqual(services.main(["run", "--", "ls", "--", "-l"]), 7)
        self.assertEqual(self.called["run"].call_args.args[1], ["ls", "--", "-l"])

    def test_other_arguments_print_usage(self) -> None:
        for arguments in ([], ["up", "now"], ["run"], ["run", "--"], ["run", "ls"], ["stop"]):
            with self.subTest(arguments), quiet() as (out, err):
                self.assertEqual(services.main(arguments), 2)
                self.assertIn("services.py run -- COMMAND", err.getvalue())
                self.assertEqual(out.getvalue(), "")
        for called in self.called.values():
            called.assert_not_called()


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        self.state = State(Path(self.enterContext(tempfile.TemporaryDirectory())))
        self.enterContext(mock.patch.dict(os.environ, OTHERS, clear=True))
        self.enterContext(mock.patch("scripts.servers.data.sweep"))
        self.enterContext(mock.patch.object(processes, "ignore_signals"))
        self.stopped = self.enterContext(mock.patch("scripts.servers.launch.stop"))
        self.launched = self.enterContext(mock.patch("scripts.servers.launch.launch", return_value=MONGOD))
        self.waited = self.enterContext(mock.patch("scripts.servers.launch.wait_until_ready"))
        self.healthy = self.enterContext(mock.patch.object(fleet, "healthy", side_effect=dict))

    def test_up_starts_and_records_missing_servers(self) -> None:
        with quiet() as (out, err):
            services.up(self.state)
        self.assertEqual(self.state.read(), {"mongod": MONGOD})
        self.assertIn(
            "mongod: mongodb://127.0.0.1:1001/?replicaSet=rs0, process 1\ndynamodb: yours", err.getvalue()
        )
        self.assertEqual(out.getvalue(), "")

    def test_up_reuses_running_servers(self) -> None:
        self.state.write({"mongod": MONGOD})
        with quiet():
            services.up(self.state)
        self.launched.assert_not_called()
        self.stopped.assert_not_called()

    def test_up_replaces_unresponsive_servers(self) -> None:
        self.state.write({"mongod": Running(9, "z", 9, "/data/9", "mongod")})
        self.healthy.side_effect = lambda _running: {}
        with quiet():
            services.up(self.state)
        self.stopped.assert_called_once_with(Running(9, "z", 9, "/data/9", "mongod"))
        self.assertEqual(self.state.read(), {"mongod": MONGOD})

    def test_failed_up_leaves_nothing_behind(self) -> None:
        for error in (Failure("mongod did not start"), SystemExit(130)):
            self.waited.side_effect = error
            with self.subTest(error), quiet(), self.assertRaises(type(error)):
                services.up(self.state)
            self.stopped.assert_called_with(MONGOD)
            self.assertEqual(self.state.read(), {})

    def test_env_prints_shell_exports(self) -> None:
        self.state.write({"mongod": MONGOD})
        with quiet() as (out, _):
            services.env(self.state)
        self.assertIn("export MONGODB_URI='mongodb://127.0.0.1:1001/?replicaSet=rs0'\n", out.getvalue())

    def test_env_names_missing_servers(self) -> None:
        with self.assertRaisesRegex(Failure, "^not running: mongod \\("):
            services.env(self.state)

    def test_down_stops_recorded_servers(self) -> None:
        self.state.write({"mongod": MONGOD})
        with mock.patch.object(processes, "born", return_value="a"), quiet() as (_, err):
            services.down(self.state)
        self.assertEqual(err.getvalue(), "mongod: stopping\n")
        self.stopped.assert_called_once_with(MONGOD)
        self.assertFalse(self.state.file.exists())

    def test_run_stops_only_servers_it_started(self) -> None:
        with mock.patch.object(processes, "supervise", return_value=3) as supervise:
            self.assertEqual(services.run(self.state, ["ls"]), 3)
            self.stopped.assert_called_once_with(MONGOD)
            self.stopped.reset_mock()
            self.state.write({"mongod": MONGOD})
            self.assertEqual(services.run(self.state, ["ls"]), 3)
        self.stopped.assert_not_called()
        command, environment = supervise.call_args.args
        self.assertEqual(command, ["ls"])
        self.assertEqual(environment["MONGOD"], "/bin/mongod")
        self.assertEqual(environment["AWS_ENDPOINT_URL"], "http://mine")


class Console(unittest.TestCase):
    def test_failure_is_printed_in_one_line(self) -> None:
        def fail(_arguments: list[str]) -> int:
            raise Failure("it rains")

        with quiet() as (_, err), self.assertRaises(SystemExit) as left:
            console.start("services", fail)
        self.assertEqual((left.exception.code, err.getvalue()), (1, "services: it rains\n"))

    def test_folders_belong_to_repository(self) -> None:
        self.assertTrue((paths.ROOT / "infra" / "services.py").exists())
