"""Messages to the terminal, and the start of a program."""

import sys
from collections.abc import Callable
from typing import NoReturn

from scripts.errors import Failure


def say(text: str) -> None:
    """Prints a message to standard error. Standard output is for data that other programs read."""
    print(text, file=sys.stderr, flush=True)


def usage(text: str | None) -> int:
    """Prints the usage of a program. Returns its exit code."""
    say((text or "").strip())
    return 2


def start(name: str, main: Callable[[list[str]], int], description: str | None = None) -> NoReturn:
    """Runs a program. Its description is the answer to `--help`, unless the program parses this itself."""
    if description and sys.argv[1:] in (["-h"], ["--help"]):
        print(description.strip())
        sys.exit(0)
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        say(f"{name}: {failure}")
        sys.exit(1)
