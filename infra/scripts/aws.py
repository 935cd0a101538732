"""Errors of AWS."""

from collections.abc import Iterator
from contextlib import contextmanager

from scripts.errors import Failure


@contextmanager
def reported(doing: str) -> Iterator[None]:
    """Converts the errors of AWS and of its client to failures."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only the Python of sam has it

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise Failure(f"{doing}: {error}") from error
