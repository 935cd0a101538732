"""The output of the rehearsal."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scripts.deployment.stack import Stack

LAST_EVENTS = 20
BEGAN = time.monotonic()


def say(text: str) -> None:
    """Prints a line with the seconds since the start."""
    print(f"deployment, {time.monotonic() - BEGAN:3.0f} s: {text}", flush=True)


def tell_what_waits(stack: "Stack") -> None:
    """Prints the state of a stalled search: the messages in queues, and the logs of functions."""
    sqs, logs = stack.client("sqs"), stack.client("logs")
    for logical, url in stack.of_type("AWS::SQS::Queue").items():
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        waiting, hidden = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
        say(f"{logical}: {attributes.get(waiting)} waiting, {attributes.get(hidden)} being worked on")
    for group in stack.of_type("AWS::Logs::LogGroup").values():
        for event in logs.filter_log_events(logGroupName=group, limit=1000)["events"][-LAST_EVENTS:]:
            say(f"{group}: {event['message'].rstrip()}")
