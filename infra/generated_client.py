#!/usr/bin/env python3
"""Completes a review with a client that a public generator makes from docs/openapi.json.

    tools.py run openapi-client -- python infra/generated_client.py PROGRAM     PROGRAM is `search-import`

openapi-python-client has to understand the whole description. The client creates a review, imports two files
with a record in common, decides about the pair, reads the PRISMA counts, and exports the review. The types of
the page come from another generator, openapi-typescript, and `make test-page` does the same.
"""

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from scripts import commands, console
from scripts.console import say
from scripts.errors import check
from scripts.paths import ROOT
from scripts.serving import Server, serving
from scripts.waiting import wait_for

PACKAGE = "search_import_client"
RECORD = "TY  - JOUR\nTI  - {title}\nAU  - Author, Anna\nPY  - 2020\nDO  - 10.5555/{number}\nER  - \n"
FILES = {
    "first.ris": RECORD.format(title="Sleep and memory", number=1),
    "second.ris": RECORD.format(title="Sleep and memory", number=1)
    + RECORD.format(title="Diet of adolescents", number=2),
}
END_SECONDS = 60


class Client:
    """The generated client of a server."""

    def __init__(self, url: str) -> None:
        self.models = import_module(f"{PACKAGE}.models")
        self.client = import_module(PACKAGE).Client(base_url=url, raise_on_unexpected_status=True)

    def call(self, operation: str, **given: Any) -> Any:
        """Returns the parsed response of an operation, which has to succeed."""
        return self.answer(operation, **given).parsed

    def answer(self, operation: str, **given: Any) -> Any:
        module = import_module(f"{PACKAGE}.api.default.{operation}")
        answer = module.sync_detailed(client=self.client, **given)
        check(answer.status_code < 400, f"{operation} was answered with {answer.status_code}")
        return answer


def generate(folder: Path) -> None:
    """Generates the client. A part of the description that the generator cannot read is an error."""
    command = ["openapi-python-client", "generate", "--path", str(ROOT / "docs" / "openapi.json")]
    hooks = folder / "config.yaml"
    # The generator would format its files.
    hooks.write_text("post_hooks: []\n", "utf-8")
    to = ["--output-path", str(folder / "client"), "--config", str(hooks)]
    said = commands.output([*command, *to])
    check("arning" not in said and "nable" not in said, f"the generator cannot read all of it:\n{said}")
    sys.path.insert(0, str(folder / "client"))


def complete_review(api: Client, server: Server) -> None:
    models = api.models
    project = api.call("create_review", body=models.NewReview(name="Sleep")).project_id
    files = [models.NewFile(name=name, size_bytes=len(text)) for name, text in FILES.items()]
    body = models.NewSearch(name="Both", files=files)
    announced = api.call("create_search", project=project, body=body)
    for file in announced.files:
        server.upload(file.upload.to_dict(), FILES[file.name].encode())
    at = {"project": project, "search": announced.search_id}
    imported = wait_for("the end of the import", END_SECONDS, lambda: ended(api.call("show_search", **at)))
    check((imported.state, imported.studies) == ("Completed", 3), f"{imported.state}, {imported.studies}")
    [pair] = wait_for("a pair", END_SECONDS, lambda: api.call("list_all_duplicates", project=project).items)
    places = [
        models.StudyPlace(search_id=announced.search_id, file_id=study.file_id, record=study.record)
        for study in (pair.original, pair.study)
    ]
    different = models.NewDecision(decision=models.DecisionKind.DIFFERENT, studies=places)
    api.call("decide", project=project, body=different)
    wait_for("the decision", END_SECONDS, lambda: not api.call("list_all_duplicates", project=project).items)
    flow = api.call("show_flow", project=project)
    check(flow.total.records == 3 and flow.total.duplicates == 0, f"{flow.total}")
    # The generator supports only JSON, of several media types.
    json_format = models.ExportReviewFormat.CSL_JSON
    exported = api.answer("export_review", project=project, format_=json_format).content
    check(len(json.loads(exported)) == 3, f"the export does not have three records: {exported!r}")


def ended(search: Any) -> Any:
    return search if search.completed_at else None


def main(arguments: list[str]) -> int:
    check(len(arguments) == 1, "the argument is the path of search-import")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder)
        settings = {**os.environ, "SEARCH_IMPORT_DATA_DIR": str(folder / "data")}
        with serving(Path(arguments[0]), settings) as server:
            complete_review(Client(server.url), server)
    say("a generated client has completed a review")
    return 0


if __name__ == "__main__":
    console.start("generated_client", main, __doc__)
