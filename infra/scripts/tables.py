"""Tables that a program computes and writes into a document."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts import console
from scripts.errors import check


def replaced(document: str, name: str, begin: str, end: str, content: str) -> str:
    """Returns a document with this content between two markers, which it has to contain once."""
    between = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    # A function, because a backslash in a replacement string would be an escape.
    document, count = between.subn(lambda _: f"{begin}{content}{end}", document)
    check(count == 1, f'expected one section "{name}", found {count}')
    return document


def written(document: str, program: str, tables: Mapping[str, str]) -> str:
    """Returns a document with these tables between the markers of the program."""
    for name, content in tables.items():
        begin, end = f"<!-- {name}: {program} -->", f"<!-- end of {name} -->"
        document = replaced(document, name, begin, end, f"\n\n{content}\n\n")
    return document


def run(arguments: Sequence[str], usage: str | None, program: str, tables: Mapping[str, str]) -> int:
    """Prints the tables, or writes them into the document that the arguments name."""
    match arguments:
        case []:
            print(*tables.values(), sep="\n\n")
        case [document]:
            path = Path(document)
            path.write_text(written(path.read_text("utf-8"), program, tables), "utf-8")
        case _:
            return console.usage(usage)
    return 0
