"""Tables that a program computes and writes into a document."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts import console


def written(document: str, program: str, tables: Mapping[str, str]) -> str:
    """Returns a document with these tables between the markers of the program."""
    for name, content in tables.items():
        begin, end = f"<!-- {name}: {program} -->", f"<!-- end of {name} -->"
        between = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        replaced = f"{begin}\n\n{content}\n\n{end}".replace("\\", "\\\\")
        document = between.sub(replaced, document)
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
