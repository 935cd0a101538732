"""Waiting for something that happens elsewhere."""

import time
from collections.abc import Callable
from typing import TypeVar

from scripts.errors import check

INTERVAL_SECONDS = 0.2

Result = TypeVar("Result")


def wait_for(what: str, seconds: int, found: Callable[[], Result]) -> Result:
    """Returns the first result that is true."""
    end = time.monotonic() + seconds
    while not (result := found()):
        check(time.monotonic() < end, f"not within {seconds} s: {what}")
        time.sleep(INTERVAL_SECONDS)
    return result
