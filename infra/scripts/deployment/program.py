"""Runs the programs built for the tests against a deployment."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts import commands
from scripts.paths import ROOT


def program(name: str, given: Mapping[str, str] = os.environ) -> Path:
    return Path(given.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / name


def check_template(template: dict[str, Any]) -> None:
    """Repeats the checks of the template on the deployed resources."""
    path = ROOT / "target" / "deployed" / "template.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(template, indent=1))
    commands.openly([program("dev"), "check-template", "--deployed", path])


def studies(search_id: str, environment: Mapping[str, str]) -> list[Any]:
    """Returns the studies of a search as stored in MongoDB."""
    command: commands.Command = [program("search-import"), "studies", search_id, "--backend", "aws", "--json"]
    return [json.loads(line) for line in commands.output(command, environment).splitlines()]
