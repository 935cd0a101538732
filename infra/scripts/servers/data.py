"""The data folders of servers, in a file system in memory if one exists."""

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from scripts.servers import state
from scripts.servers.state import Running

PREFIX = "search-import-servers-"
RECORD = "record.json"
# The age after which a folder without a record is deleted. The record is written once the server has started.
NEW_SECONDS = 3600


def root() -> Path:
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def create() -> Path:
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=root()))


def record(folder: Path, running: Running) -> None:
    (folder / RECORD).write_text(json.dumps(state.to_json(running)))


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def is_abandoned(folder: Path, now: float) -> bool:
    try:
        return not state.from_json(json.loads((folder / RECORD).read_text())).is_alive()
    except (OSError, ValueError):
        return now - folder.stat().st_mtime > NEW_SECONDS


def sweep(place: Path) -> None:
    """Deletes the data of servers that were killed together with the program that started them."""
    for folder in place.glob(f"{PREFIX}*"):
        if is_abandoned(folder, time.time()):
            remove(folder)
