#!/usr/bin/env python3
"""Deploys a project of `dev new` to a substitute for AWS, and uses it without MongoDB.

    services.py run -- tools.py run sam -- project.py TEMPLATE PROGRAM

The test `infra/dev/tests/command_line/new_project.rs` builds the project. The template is the one that its
tools generate, with a table for its documents. PROGRAM contains all of its functions, and shortens the
deadline of jobs if DUE_AT_ONCE is set.

A job is requested over HTTP, and the service carries it out. The worker of another job receives nothing.
The schedule of the stack sends the event of its timer, which ends it. What the worker does afterwards
changes nothing.
"""

import time
from pathlib import Path

from scripts import console
from scripts.deployment import built, checks, gaps, progress, search
from scripts.deployment.progress import say
from scripts.deployment.stack import FOLDER, Stack
from scripts.errors import Failure, check
from scripts.waiting import wait_for

# The substitute looks for due schedules every 10 seconds, and the schedule has an interval of a minute.
END_SECONDS = 100
INDEXES = 6
DUE_AT_ONCE = "DUE_AT_ONCE"


def deploy(stack: Stack, template: Path, program: Path) -> None:
    folder = FOLDER / "project"
    folder.mkdir(parents=True, exist_ok=True)
    text, names = built.with_code(template.read_text("utf-8"))
    check(len(names) > 0, f"{template} has no function that is built by cargo-lambda")
    for name in set(names):
        built.pack(program, folder / f"{name}.zip")
    deployed = folder / "template.yaml"
    deployed.write_text(text, "utf-8")
    stack.client("s3").create_bucket(Bucket=stack.code)
    stack.sam(
        *("deploy", "--stack-name", stack.name, "--template-file", str(deployed)),
        *("--s3-bucket", stack.code, "--no-resolve-s3", "--capabilities", "CAPABILITY_IAM"),
        *("--no-confirm-changeset", "--no-progressbar", "--region", stack.region),
        *("--parameter-overrides", "Architecture=x86_64"),
    )
    stack.resources = stack.read_resources(stack.name)


def compare(stack: Stack) -> None:
    """Checks the deployed resources."""
    say(f"filled: {gaps.time_to_live.__doc__} ({', '.join(gaps.time_to_live(stack))})")
    checks.check_tables(stack)
    checks.check_queues(stack)
    checks.check_routes(stack)
    name = stack.resources["StoreTable"].physical
    indexes = stack.client("dynamodb").describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
    check(len(indexes) == INDEXES, f"the table of documents has other indexes: {indexes}")
    for logical, function in stack.of_type("AWS::Lambda::Function").items():
        found = stack.client("lambda").get_function_configuration(FunctionName=function)
        mongodb = [name for name in found["Environment"]["Variables"] if name.startswith("MONGODB")]
        check(not mongodb, f"{logical} has {mongodb}")
    say(f"{len(stack.resources)} resources, without MongoDB")


def state(stack: Stack, job: str) -> str:
    return str(search.call(stack, "GET", f"/jobs/{job}")["state"])


def finish_job(stack: Stack) -> None:
    search.call(stack, "POST", "/jobs/first", "hello")
    wait_for("the job is finished", END_SECONDS, lambda: state(stack, "first") == "finished")
    say("a job is finished")


def expire_job(stack: Stack) -> None:
    """Checks that the timer of a job fires while its worker receives nothing, and that the job has ended."""
    lambda_, jobs = stack.client("lambda"), stack.resources["JobsFunction"].physical
    found = lambda_.get_function_configuration(FunctionName=jobs)["Environment"]["Variables"]
    environment = {"Variables": {**found, DUE_AT_ONCE: "1"}}
    lambda_.update_function_configuration(FunctionName=jobs, Environment=environment)
    [(_, worker)] = [
        one
        for one in stack.of_type("AWS::Lambda::EventSourceMapping").items()
        if one[0].startswith("WorkerFunction")
    ]
    lambda_.update_event_source_mapping(UUID=worker, Enabled=False)
    search.call(stack, "POST", "/jobs/late", "hello")
    wait_for("the timer fires", END_SECONDS, lambda: state(stack, "late") == "expired")
    say("the timer of a job has ended it")
    check(waiting(stack, "WorkQueue") == 1, "the command of the job has no message")
    lambda_.update_event_source_mapping(UUID=worker, Enabled=True)
    queues = ("WorkQueue", "SagaQueue", "ControlQueue")
    wait_for(
        "all messages are processed",
        END_SECONDS,
        lambda: not any(waiting(stack, queue) for queue in queues),
    )
    check(state(stack, "late") == "expired", "a late reply has changed a job that has ended")
    dead = [queue for queue in stack.of_type("AWS::SQS::Queue") if "Dead" in queue and waiting(stack, queue)]
    check(not dead, f"messages are in {dead}")


def waiting(stack: Stack, queue: str) -> int:
    """Returns the number of messages in a queue, those being processed included."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    url = stack.resources[queue].physical
    found = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(found[name]) for name in names)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        return console.usage(__doc__)
    began = time.monotonic()
    stack = Stack()
    try:
        deploy(stack, *map(Path, arguments))
        compare(stack)
        finish_job(stack)
        expire_job(stack)
    except Failure:
        progress.tell_what_waits(stack)
        raise
    finally:
        stack.remove()
    say(f"a project was deployed and used in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    console.start("project", main, __doc__)
