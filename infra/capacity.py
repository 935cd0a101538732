#!/usr/bin/env python3
"""Computes the limits of a deployment at a rate of searches: the table of docs/capacity.md.

    capacity.py [docs/capacity.md]      print them, or write them into the document

The rates follow from the calls of a search of one file, as counted by `dev bench calls` in ledger mode. The
durations below are assumed, and the limits of AWS and MongoDB have their sources. Concurrency is rate times
duration (Little's law), so twice the duration is twice the concurrency.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scripts import console, environments, tables

RATES = (1, 100, 10_000)

# A search of one file: announced, stored, read. Each is a message of the saga queue, with a write to the
# ledger, and one more at the end.
SAGA_MESSAGES = 3
LEDGER_WRITES = SAGA_MESSAGES + 1
# Further requests: the announcement, polls of the state every five seconds for half a minute, the upload.
REQUESTS = 1 + 6
STUDIES = 1_000

# Assumed durations in seconds. A call to DynamoDB takes 5 ms, and a majority read or write of MongoDB 10 ms.
SAGA_SECONDS = 0.05
REQUEST_SECONDS = 0.05
NOTIFY_SECONDS = 0.03
PARSE_SECONDS = 1.0

POOL = 5
WATCHING = 2
BEHIND_QUEUES = 6  # dispatch-outbox and report-faults, three each

# The concurrency of an environment for production.
ENVIRONMENT = "search-import-prod"
PARAMETERS = environments.read(ENVIRONMENT)
SAGA, PARSE, API = (int(PARAMETERS[f"{name}Concurrency"]) for name in ("Saga", "Parse", "Api"))
SOURCE = f"`{{}}Concurrency` in config/{ENVIRONMENT}.toml"


@dataclass(frozen=True)
class Limit:
    """A limit of a service: its default, and the way to exceed it."""

    what: str
    of_minute: float  # used at one search a minute
    allowed: float
    source: str
    beyond: str


def per_second(of_search: float) -> float:
    return of_search / 60


def concurrency() -> float:
    saga, parse = SAGA_MESSAGES * SAGA_SECONDS, PARSE_SECONDS
    return per_second(saga + parse + NOTIFY_SECONDS + REQUESTS * REQUEST_SECONDS)


def with_database() -> float:
    return concurrency() - per_second(NOTIFY_SECONDS)


LIMITS = (
    Limit(
        "requests to the API a second",
        per_second(REQUESTS),
        20,
        "`DefaultRouteSettings` of the template",
        "raise it there; the account allows 10,000",
    ),
    Limit(
        "files that are read at the same time",
        per_second(PARSE_SECONDS),
        PARSE,
        SOURCE.format("Parse"),
        "raise it, as far as the connections to MongoDB allow",
    ),
    Limit(
        "requests that are handled at the same time",
        per_second(REQUESTS * REQUEST_SECONDS),
        API,
        SOURCE.format("Api"),
        "raise it, as far as the connections to MongoDB allow",
    ),
    Limit(
        "batches of the saga at the same time, of one message each",
        per_second(SAGA_MESSAGES * SAGA_SECONDS),
        SAGA,
        SOURCE.format("Saga"),
        "raise it, as far as the connections to MongoDB allow",
    ),
    Limit(
        "concurrent executions of Lambda",
        concurrency(),
        1_000,
        "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html",
        "Service Quotas, *Concurrent executions*: tens of thousands are given",
    ),
    Limit(
        "messages of one queue in flight",
        per_second(PARSE_SECONDS),
        120_000,
        "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html",
        "nothing to do",
    ),
    Limit(
        "writes to the ledger a second",
        per_second(LEDGER_WRITES),
        40_000,
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
        "Service Quotas, *Table-level write throughput limit*. A new table takes 4,000 at once and doubles "
        "in half an hour, or is warmed beforehand",
    ),
    Limit(
        "uploads to the bucket a second",
        per_second(1),
        3_500,
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html",
        "S3 splits the keys by project",
    ),
    Limit(
        "studies stored a second",
        per_second(STUDIES),
        8_000,
        "assumed of one replica set; an import of a large file shows yours",
        "a larger size first; then shards",
    ),
    Limit(
        "connections to one server",
        (with_database()) * (POOL + WATCHING),
        1_500,
        "https://www.mongodb.com/docs/atlas/reference/atlas-limits/",
        "a larger size, smaller pools (`SEARCH_IMPORT_MONGODB_POOL_SIZE`), or a batching window for run-saga",
    ),
)


def number(value: float) -> str:
    if value >= 100:
        return f"{round(value, -1 if value >= 1_000 else 0):,.0f}"
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def fixed(limit: Limit) -> float:
    """Returns the use that does not depend on the number of searches."""
    return BEHIND_QUEUES * (POOL + WATCHING) if limit.what.startswith("connections") else 0


def used(limit: Limit, rate: int) -> float:
    return fixed(limit) + limit.of_minute * rate


def reached_at(limit: Limit) -> float:
    """Returns the searches a minute that reach the limit."""
    return (limit.allowed - fixed(limit)) / limit.of_minute


def table() -> str:
    """Returns the limits, the first to be reached at the top."""
    rates = " | ".join(f"{rate:,} a minute" for rate in RATES)
    head = f"| what | {rates} | allowed | reached at | beyond that |"
    rows = [head, "| --- " * (len(RATES) + 4) + "|"]
    for limit in sorted(LIMITS, key=reached_at):
        cells = [number(used(limit, rate)) for rate in RATES]
        marked = [
            f"**{cell}**" if used(limit, rate) > limit.allowed else cell
            for cell, rate in zip(cells, RATES, strict=True)
        ]
        allowed, is_link = f"{limit.allowed:,.0f}", limit.source.startswith("https")
        source = f"[{allowed}]({limit.source})" if is_link else f"{allowed} ({limit.source})"
        reached = number(reached_at(limit))
        rows.append(f"| {limit.what} | {' | '.join(marked)} | {source} | {reached} | {limit.beyond} |")
    return "\n".join(rows)


PROGRAM = "infra/capacity.py"


def tables_by_name() -> dict[str, str]:
    """Returns the table by the name of its markers in the document."""
    return {"limits": table()}


def written(document: str) -> str:
    """Returns a document with the current table between its markers."""
    return tables.written(document, PROGRAM, tables_by_name())


def main(arguments: Sequence[str]) -> int:
    return tables.run(arguments, __doc__, PROGRAM, tables_by_name())


if __name__ == "__main__":
    console.start("capacity", main, __doc__)
