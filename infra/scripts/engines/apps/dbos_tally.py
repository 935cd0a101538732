"""A tally as a row, and each event as a workflow with one transaction.

    dbos_tally.py DATABASE PORT

DBOS recognizes duplicates of an event by the id of the workflow. The writes of the transaction and the record
that it was executed are one commit.
"""

# The decorators have no types here, see mypy.ini.
# mypy: disable-error-code="untyped-decorator"

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy
from dbos import DBOS, SetWorkflowID, SQLAlchemyDatasource

from door import serve

CONNECTIONS = 40
THREADS = 128
CREATE = sqlalchemy.text("CREATE TABLE tally (key text PRIMARY KEY, events int[] NOT NULL)")
WRITE = sqlalchemy.text(
    "INSERT INTO tally VALUES (:key, ARRAY[:event]) "
    "ON CONFLICT (key) DO UPDATE SET events = tally.events || :event"
)
READ = sqlalchemy.text("SELECT events FROM tally WHERE key = :key")


async def main(database: str, port: int) -> None:
    DBOS(
        config={
            "name": "tally",
            "system_database_url": database,
            "sys_db_pool_size": CONNECTIONS,
            "max_executor_threads": THREADS,
            "log_level": "WARNING",
        }
    )
    source = SQLAlchemyDatasource.create(database, engine_kwargs={"pool_size": CONNECTIONS})

    @source.transaction
    def write(key: str, event: int) -> None:
        source.sql_session().execute(WRITE, {"key": key, "event": event})

    @DBOS.workflow()
    def counted(key: str, event: int) -> None:
        write(key, event)

    def take(key: str, event: int) -> None:
        with SetWorkflowID(f"{key}-{event}"):
            counted(key, event)

    def look(key: str) -> list[int]:
        with source.engine.begin() as connection:
            row = connection.execute(READ, {"key": key}).first()
            return list(row[0]) if row else []

    with source.engine.begin() as connection:
        connection.execute(CREATE)
    DBOS.launch()
    threads, loop = ThreadPoolExecutor(THREADS), asyncio.get_running_loop()
    await serve(
        port,
        lambda key, event: loop.run_in_executor(threads, take, key, event),
        lambda key: loop.run_in_executor(threads, look, key),
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
