"""Commands for a deployment of the programs that the tests have built."""

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
    """Repeats the checks of the template on what is deployed."""
    path = ROOT / "target" / "deployed" / "template.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(template, indent=1))
    commands.openly([program("dev"), "check-template", "--deployed", path])


def studies(search_id: str, environment: Mapping[str, str]) -> list[Any]:
    """The studies of a search, as MongoDB holds them."""
    command: commands.Command = [program("search-import"), "studies", search_id, "--backend", "aws", "--json"]
    return [json.loads(line) for line in commands.output(command, environment).splitlines()]
