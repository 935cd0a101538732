"""Processes that end with the program that started them. No other process is ended by mistake."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import NoReturn

from scripts.errors import Failure

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The time limit for each signal that ends a process.
STOP_SECONDS = 10
# From <linux/prctl.h>.
PR_SET_PDEATHSIG = 1


def born(pid: int) -> str | None:
    """Returns the start time of a process, which identifies it with its number; None if it has ended."""
    if not Path("/proc/self/stat").exists():
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or None
    try:
        return born_by_stat(Path(f"/proc/{pid}/stat").read_text())
    except OSError:
        return None


def born_by_stat(stat: str) -> str | None:
    # The second field is the program's name in parentheses, which may itself contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended, but its exit status has not been read.
    return None if fields[0] == "Z" else fields[19]


def is_alive(pid: int, birth: str | None) -> bool:
    return birth is not None and born(pid) == birth


def end(pid: int, birth: str | None) -> None:
    """Ends exactly the process that was started and its children, which form a process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not is_alive(pid, birth):
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        give_up = time.monotonic() + STOP_SECONDS
        while is_alive(pid, birth) and time.monotonic() < give_up:
            # It is not a child of this process if another run of the program started it.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            time.sleep(0.05)


def dies_with(parent: int) -> Callable[[], None]:
    """Makes the kernel end the child when this program is killed and cannot do so itself."""

    def prepare() -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            # This program was killed before the kernel was informed.
            if os.getppid() != parent:
                os._exit(1)

    return prepare


def supervise(command: list[str], environment: Mapping[str, str]) -> int:
    """Runs a command in place of this program, which forwards signals to it and exits with its code."""
    try:
        child = subprocess.Popen(command, env=environment, preexec_fn=dies_with(os.getpid()))
    except OSError as error:
        raise Failure(f"{command[0]} could not be started: {error}") from error

    def forward(number: int, _frame: FrameType | None) -> None:
        # The command has already received a Ctrl-C from the terminal.
        if number != signal.SIGINT or not sys.stdin.isatty():
            child.send_signal(number)

    for number in SIGNALS:
        signal.signal(number, forward)
    return exit_code(child.wait())


def exit_code(code: int) -> int:
    """Returns the exit code as a shell does: 128 plus the signal for a process that a signal ended."""
    return code if code >= 0 else 128 - code


def leave_on_signals() -> None:
    """Raises an exception for a signal, so that started processes are stopped."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    for number in SIGNALS:
        signal.signal(number, leave)


def ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
