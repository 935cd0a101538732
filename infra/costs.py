#!/usr/bin/env python3
"""Computes the tables of docs/costs.md.

    costs.py [docs/costs.md]      print them, or write them into the document

The calls of a message are counted by `dev bench calls`, and those of a search are in capacity.py. Running
times are assumed there. Prices are those of us-east-1, on demand, before free tiers.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import capacity
from scripts import console, tables
from scripts.paths import ROOT

MEASURED = json.loads((ROOT / "infra" / "dev" / "src" / "bench" / "prices.json").read_text("utf-8"))
WRITE, QUEUE, INVOCATION = (
    MEASURED[name]["per_million"] for name in ("dynamodb_write_unit", "sqs_request", "lambda_request")
)
# Dollars per million.
GB_SECOND = 13.33  # on arm64, https://aws.amazon.com/lambda/pricing/
LOG_LINE = 0.50  # of 1 KB, https://aws.amazon.com/cloudwatch/pricing/
API_REQUEST = 1.00  # https://aws.amazon.com/api-gateway/pricing/
PUT, GET = 5.00, 0.40  # https://aws.amazon.com/s3/pricing/
READ = 0.125  # a consistent read of up to 4 KB, https://aws.amazon.com/dynamodb/pricing/on-demand/

# Counted by `dev bench calls` for a search of two files, with one message per batch.
WRITES_OF_MESSAGE = 1.2
QUEUE_CALLS_OF_MESSAGE = 2.4
MESSAGES_OF_SEARCH = 6
READS_OF_SEARCH = 2
MEMORY_GB = 0.25
SECONDS_OF_MESSAGE = 0.03

# Measured by `message_consumes_these_units` (tests/servers): a message with an effect, and a document of less
# than 1 KB.
STORE_WRITES, STORE_READS = 4, 3
# The write units of the decisions about the message and its effect.
HISTORY_WRITES = 2
# The units of a view.
VIEW_WRITES, VIEW_READS = 5, 1

HOURS = 730
MONTH_SECONDS = HOURS * 3_600


@dataclass(frozen=True)
class Cost:
    what: str
    dollars: float


def message() -> list[Cost]:
    """Returns the costs of one million messages."""
    return [
        Cost(f"{WRITES_OF_MESSAGE} writes to the ledger", WRITES_OF_MESSAGE * WRITE),
        Cost(f"{QUEUE_CALLS_OF_MESSAGE} requests to SQS", QUEUE_CALLS_OF_MESSAGE * QUEUE),
        Cost("an invocation", INVOCATION),
        Cost(f"{SECONDS_OF_MESSAGE} s in {MEMORY_GB} GB", SECONDS_OF_MESSAGE * MEMORY_GB * GB_SECOND),
        Cost("a log line of 1 KB", LOG_LINE),
    ]


def message_on_dynamodb() -> list[Cost]:
    """Returns the costs of one million messages of a system without MongoDB."""
    return [
        Cost("ledger, SQS, invocation, running time and log as above", total(message())),
        Cost(f"{STORE_WRITES} write units of the store", STORE_WRITES * WRITE),
        Cost(f"{STORE_READS} read units of the store", STORE_READS * READ),
        Cost(f"{HISTORY_WRITES} write units of the history", HISTORY_WRITES * WRITE),
    ]


def view_on_dynamodb() -> list[Cost]:
    """Returns the costs of one million writes of a view."""
    return [
        Cost(f"{VIEW_WRITES} write units of the store", VIEW_WRITES * WRITE),
        Cost(f"{VIEW_READS} read unit of the store", VIEW_READS * READ),
    ]


def total(costs: Iterable[Cost]) -> float:
    """Returns the sum of the parts as rounded in the table, so that the rows add up."""
    return sum(round(cost.dollars, 2) for cost in costs)


def search() -> list[Cost]:
    """Returns the costs of one million searches of one file."""
    running = capacity.REQUEST_SECONDS * MEMORY_GB * GB_SECOND
    request = API_REQUEST + INVOCATION + running + LOG_LINE
    return [
        Cost(
            f"{capacity.REQUESTS} requests to the API, each with an invocation of "
            f"{capacity.REQUEST_SECONDS} s and a log line",
            capacity.REQUESTS * request,
        ),
        Cost("an upload", PUT),
        Cost(f"{READS_OF_SEARCH} reads of the file", READS_OF_SEARCH * GET),
        Cost(f"{MESSAGES_OF_SEARCH} messages", MESSAGES_OF_SEARCH * total(message())),
    ]


def alarms() -> int:
    """Returns the number of alarms without the one that is only used with an event bus."""
    texts = [
        (ROOT / name).read_text("utf-8") for name in ("template.yaml", "infra/templates/monitoring.yaml")
    ]
    loop = re.compile(r"Fn::ForEach::\w+:\n    - Of\n    - \[(.+)\]\n    - \$\{Of\}\w+Alarm:")
    single = re.compile(r"^  \w+Alarm:\n    Type: AWS::CloudWatch::Alarm\n    Properties:", re.MULTILINE)
    in_loops = sum(len(values.split(",")) for text in texts for values in loop.findall(text))
    return in_loops + sum(len(single.findall(text)) for text in texts)


def month() -> list[Cost]:
    """Returns the fixed costs of a month."""
    minutes = MONTH_SECONDS / 60
    # Lambda has five pollers for each of five queues, with a request every 20 s.
    polls = 5 * 5 * MONTH_SECONDS / 20
    return [
        Cost("MongoDB, an Atlas cluster M10 ([prices](https://www.mongodb.com/pricing))", 0.08 * HOURS),
        Cost(
            "metrics of the functions: 25, 0.30 each ([CloudWatch](https://aws.amazon.com/cloudwatch/pricing/))",
            25 * 0.30,
        ),
        Cost(f"{alarms()} alarms (0.10 each) and a dashboard (3.00)", alarms() * 0.10 + 3.00),
        Cost("polling of five queues by Lambda", polls * QUEUE / 1e6),
        Cost("a secret", 0.40),
        Cost("scheduled invocations of two functions, every minute", 2 * minutes * INVOCATION / 1e6),
    ]


def table(costs: Sequence[Cost]) -> str:
    rows = ["| | dollars |", "| --- | --- |"]
    rows += [f"| {cost.what} | {cost.dollars:.2f} |" for cost in costs]
    return "\n".join([*rows, f"| **total** | **{total(costs):.2f}** |"])


PROGRAM = "infra/costs.py"


def tables_by_name() -> dict[str, str]:
    """Returns the tables by the names of their markers in the document."""
    return {
        "message": table(message()),
        "dynamodb": table(message_on_dynamodb()),
        "view": table(view_on_dynamodb()),
        "search": table(search()),
        "month": table(month()),
    }


def written(document: str) -> str:
    """Returns a document with the current tables between its markers."""
    return tables.written(document, PROGRAM, tables_by_name())


def main(arguments: Sequence[str]) -> int:
    return tables.run(arguments, __doc__, PROGRAM, tables_by_name())


if __name__ == "__main__":
    console.start("costs", main, __doc__)
