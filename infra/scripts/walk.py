"""Reads the commands of a page, with their expected output."""

import re
from dataclasses import dataclass

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True)
class Step:
    heading: str
    command: str
    # Expected lines, in which … matches any text.
    output: str


def steps(page: str) -> list[Step]:
    """Returns the commands of the `console` blocks, which begin with $."""
    found: list[Step] = []
    heading = ""
    for part in re.split(r"(?m)^(?=#+ |```console\n)", page):
        if part.startswith("#"):
            heading = part.splitlines()[0].lstrip("#").strip()
        elif part.startswith("```console\n"):
            block = part.removeprefix("```console\n").partition("\n```")[0]
            found.extend(step(heading, lines) for lines in re.split(r"(?m)^\$ ", block) if lines.strip())
    return found


def step(heading: str, text: str) -> Step:
    lines = text.rstrip("\n").split("\n")
    end = 1
    if until := re.search(r"<<'(\w+)'", lines[0]):
        end = lines.index(until[1]) + 1
    while lines[end - 1].endswith("\\"):
        end += 1
    return Step(heading, "\n".join(lines[:end]), "\n".join(lines[end:]).strip())


def matches(expected: str, shown: str) -> bool:
    """Returns whether the lines occur in this order. Ids may differ, and other lines may intervene."""
    parts = re.split(f"(…\n?|\n|{UUID})", expected)
    return re.search("".join(map(pattern, parts)), shown, re.DOTALL) is not None


def pattern(part: str) -> str:
    match part:
        case "…" | "…\n":
            return ".*?"
        case "\n":
            return r"\n(?:.*\n)?"
        case _ if re.fullmatch(UUID, part):
            return UUID
        case _:
            return re.escape(part)
