#!/usr/bin/env python3
"""Puts the state machine's diagram and table, as the program draws them, between the markers of a page.

diagram.py PROGRAM PAGE
"""

from collections.abc import Mapping
from pathlib import Path

from scripts import commands, console, tables


def drawn(program: str) -> dict[str, str]:
    """The content of each section."""

    def form(name: str) -> str:
        return commands.output([program, "diagram", "--format", name], cwd=None)

    return {"diagram": f"```mermaid\n{form('mermaid')}```\n", "table": form("table")}


def replaced(text: str, sections: Mapping[str, str]) -> str:
    for name, content in sections.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        text = tables.replaced(text, name, begin, end, content)
    return text


def main(arguments: list[str]) -> int:
    match arguments:
        case [program, file]:
            page = Path(file)
            page.write_text(replaced(page.read_text("utf-8"), drawn(program)), "utf-8")
        case _:
            return console.usage(__doc__)
    return 0


if __name__ == "__main__":
    console.start("diagram", main, __doc__)
