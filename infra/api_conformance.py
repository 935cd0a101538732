#!/usr/bin/env python3
"""Compares the HTTP API of a server with its description (docs/openapi.json).

    api_conformance.py PROGRAM     PROGRAM is `search-import`

Schemathesis generates requests from the description, valid and invalid ones, and chains of them. A server on
a new data directory, with an import, answers them. A response that the description does not permit is a
finding, and so is a server error. MAX_EXAMPLES sets the number of requests of a kind for each operation (100
by default), and PROOF_SEED the seed.
"""

import os
import tempfile
from pathlib import Path

from scripts import commands, console
from scripts.errors import check
from scripts.paths import ROOT
from scripts.serving import Server, serving

SAMPLE = ROOT / "tests" / "samples" / "psycinfo.ris"
MAX_EXAMPLES = "100"
EXCLUDED = [
    # A generated id is valid, but nothing has this id.
    "positive_data_acceptance",
    # The empty text of an optional parameter counts as an invalid value, but some texts may be empty.
    "negative_data_rejection",
    # A bulk action that decides about no pair is not stored, so it cannot be undone.
    "ensure_resource_availability",
]


def test_requests(server: Server) -> list[str]:
    return [
        "schemathesis",
        "run",
        f"{server.url}/openapi.json",
        "--exclude-checks",
        ",".join(EXCLUDED),
        "--max-examples",
        os.environ.get("MAX_EXAMPLES", MAX_EXAMPLES),
        "--seed",
        os.environ.get("PROOF_SEED", "1"),
        "--exclude-path-regex",
        # Streams do not end, and a trial runs for seconds.
        "/events$|^/admin/trials$",
        "--continue-on-failure",
        "--no-color",
        "--warnings",
        "off",
    ]


def main(arguments: list[str]) -> int:
    check(len(arguments) == 1, "the argument is the path of search-import")
    with tempfile.TemporaryDirectory() as folder:
        settings = {**os.environ, "SEARCH_IMPORT_DATA_DIR": folder}
        with serving(Path(arguments[0]), settings) as server:
            content = SAMPLE.read_bytes()
            announced = server.announce("sample", [(SAMPLE.name, len(content))], "sample")
            server.upload(announced["files"][0]["upload"], content)
            # Schemathesis keeps a cache in the current directory.
            commands.openly(test_requests(server), cwd=Path(folder))
    return 0


if __name__ == "__main__":
    console.start("api_conformance", main, __doc__)
