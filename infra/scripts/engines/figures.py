"""Summarizes several rounds in a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Cell:
    """A measurement of one engine with a number of clients and sagas."""

    sagas: int
    clients: int
    engine: str


@dataclass(frozen=True)
class Summary:
    per_second: float
    least: float
    most: float
    p50_ms: float
    p99_ms: float
    lost: int
    doubled: int
    memory_mib: float
    rounds: int


def summaries(rounds: Iterable[dict[str, Any]]) -> dict[Cell, Summary]:
    """Returns each cell once, in the order of measurement."""
    grouped: dict[Cell, list[dict[str, Any]]] = {}
    for found in rounds:
        grouped.setdefault(Cell(found["sagas"], found["clients"], found["engine"]), []).append(found)
    return {cell: summary(found) for cell, found in grouped.items()}


def summary(rounds: Sequence[dict[str, Any]]) -> Summary:
    speeds = [found["per_second"] for found in rounds]
    return Summary(
        per_second=median(speeds),
        least=min(speeds),
        most=max(speeds),
        p50_ms=median(found["p50_ms"] for found in rounds),
        p99_ms=median(found["p99_ms"] for found in rounds),
        # Figures that are summarized by the worst round instead of the median.
        lost=max(found["lost"] for found in rounds),
        doubled=max(found["doubled"] for found in rounds),
        memory_mib=max(found["memory_mib"] for found in rounds),
        rounds=len(rounds),
    )


HEAD = (
    "sagas",
    "clients",
    "engine",
    "messages a second",
    "lowest to highest",
    "p50 ms",
    "p99 ms",
    "lost",
    "doubled",
    "MiB",
    "ours is faster by",
)


def table(found: dict[Cell, Summary], ours: str) -> list[str]:
    """Returns the table in Markdown. The last column is the ratio of our messages to theirs in one run."""
    lines = [row(HEAD), row(["---"] * len(HEAD))]
    for cell, each in found.items():
        own = found.get(Cell(cell.sagas, cell.clients, ours))
        ratio = f"{own.per_second / each.per_second:.1f} times" if own and cell.engine != ours else ""
        lines.append(
            row(
                [
                    f"{cell.sagas:,}",
                    cell.clients,
                    cell.engine,
                    f"{each.per_second:,.0f}",
                    f"{each.least:,.0f} to {each.most:,.0f}" if each.rounds > 1 else "one round",
                    f"{each.p50_ms:.1f}",
                    f"{each.p99_ms:.1f}",
                    each.lost,
                    each.doubled,
                    f"{each.memory_mib:.0f}",
                    ratio,
                ]
            )
        )
    return lines


def hops(found: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the duration of each call in Markdown."""
    head = ("call", "calls", "p50 ms", "p99 ms")
    lines = [row(head), row(["---"] * len(head))]
    lines += [
        row([each["hop"], f"{each['calls']:,}", f"{each['p50_ms']:.1f}", f"{each['p99_ms']:.1f}"])
        for each in found
    ]
    return lines


def row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
