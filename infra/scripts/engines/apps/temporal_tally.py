"""A tally as a workflow, and each event as a signal that starts the workflow if necessary.

    temporal_tally.py SERVER PORT

A signal is answered when it is in the stored history of the workflow. Temporal does not detect duplicate
signals, so the workflow does; duplicates after its end are refused by the id of the workflow.
"""

# The decorators have no types here, see mypy.ini.
# mypy: disable-error-code="untyped-decorator"

import asyncio
import sys

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from door import serve

EVENTS = 5
QUEUE = "tally"


@workflow.defn(name="tally")
class Tally:
    def __init__(self) -> None:
        self.events: list[int] = []

    @workflow.run
    async def run(self) -> list[int]:
        await workflow.wait_condition(lambda: len(self.events) == EVENTS)
        return self.events

    @workflow.signal
    def event(self, event: int) -> None:
        if event not in self.events:
            self.events.append(event)

    @workflow.query
    def state(self) -> list[int]:
        return self.events


async def main(server: str, port: int) -> None:
    client = await Client.connect(server)

    async def take(key: str, event: int) -> None:
        try:
            await client.start_workflow(
                "tally",
                id=key,
                task_queue=QUEUE,
                start_signal="event",
                start_signal_args=[event],
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            )
        except WorkflowAlreadyStartedError:
            # The workflow has ended, so it has all its events.
            return

    async def look(key: str) -> list[int]:
        events: list[int] = await client.get_workflow_handle(key).query("state")
        return events

    # The sandbox checks workflows for errors, which costs time.
    async with Worker(
        client, task_queue=QUEUE, workflows=[Tally], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        await serve(port, take, look)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
