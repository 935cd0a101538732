"""A running `search-import serve`, for measurements."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts import forms
from scripts.errors import Failure, check
from scripts.servers.launch import free_port

PATIENCE_SECONDS = 60
STOP_SECONDS = 10


@dataclass
class Server:
    url: str
    process: subprocess.Popen[bytes]
    project: uuid.UUID = field(default_factory=uuid.uuid4)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def announce(self, name: str, files: Sequence[tuple[str, int]], key: str) -> Any:
        """Announces an import of files with their sizes in bytes, and returns the response with the forms."""
        listed = [{"name": file, "size_bytes": size} for file, size in files]
        request = urllib.request.Request(
            f"{self.url}/projects/{self.project}/searches",
            json.dumps({"name": name, "files": listed}).encode(),
            {"content-type": "application/json", "idempotency-key": key},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def upload(self, form: Mapping[str, Any], content: bytes) -> None:
        forms.upload(form, "file", content)

    def peak_mib(self) -> float:
        """Returns the peak resident memory, as reported by the Linux kernel."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024

    def stop(self) -> float:
        """Stops the server like Ctrl-C, and returns the seconds that it takes."""
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        return time.monotonic() - began


@contextlib.contextmanager
def serving(program: Path, settings: Mapping[str, str]) -> Iterator[Server]:
    """Runs the server, and yields it when it answers."""
    check(program.is_file(), f"{program} is not there: build it with `make run`")
    address = f"127.0.0.1:{free_port()}"
    command = [str(program), "serve", "--listen", address]
    output = subprocess.DEVNULL
    with subprocess.Popen(command, env=settings, stdout=output, stderr=output) as process:
        server = Server(f"http://{address}", process)
        try:
            wait_for(server)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(server: Server) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        check(server.process.poll() is None, f"`search-import serve` ended with {server.process.returncode}")
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            server.get("/health")
            return
        time.sleep(0.1)
    raise Failure(f"{server.url} has not answered within {PATIENCE_SECONDS} s")
