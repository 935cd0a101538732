"""Starts a server, waits for it, and stops it."""

import contextlib
import os
import socket
import subprocess
import time
from http.client import HTTPException
from pathlib import Path

from scripts.errors import Failure
from scripts.servers import data, processes
from scripts.servers.server import Server, Start
from scripts.servers.state import Running

# A server that takes longer than this has failed.
START_SECONDS = 90
LOG = "log"


def free_port() -> int:
    """Returns a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(server: Server, *, with_us: bool) -> Running:
    """Starts a server without waiting. With `with_us`, it ends with this program in any case."""
    port = free_port()
    folder = data.create()
    with contextlib.ExitStack() as undo:
        undo.callback(data.remove, folder)
        try:
            start = server.start(port, folder)
            process = spawn(start, folder / LOG, with_us=with_us)
        except OSError as error:
            raise Failure(f"{server.name} could not be started: {error}") from error
        undo.pop_all()
    running = Running(process.pid, processes.born(process.pid), port, str(folder), start.command[0])
    data.record(folder, running)
    return running


def spawn(start: Start, log: Path, *, with_us: bool) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            start.command,
            cwd=start.folder,
            env={**os.environ, **start.environment},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            # In its own process group, so that a Ctrl-C for the command does not stop it.
            start_new_session=True,
            preexec_fn=processes.dies_with(os.getpid()) if with_us else None,
        )


def is_ready(server: Server, running: Running) -> bool:
    try:
        return server.ready(running.port)
    except (OSError, HTTPException, ValueError):
        return False


def wait_until_ready(server: Server, running: Running) -> None:
    give_up = time.monotonic() + START_SECONDS
    while not is_ready(server, running):
        if not running.is_alive() or time.monotonic() > give_up:
            lines = Path(running.data, LOG).read_text(errors="replace").splitlines()[-5:]
            raise Failure("\n".join([f"{server.name} did not start; the end of its log:", *lines]))
        time.sleep(0.1)


def stop(running: Running) -> None:
    processes.end(running.pid, running.born)
    data.remove(Path(running.data))
