"""Functions whose code is in a template."""

import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from scripts.errors import check


def load(template: Path, modules: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the definitions of the only inline function of a template, with replaced imports."""
    found = re.search(r"^ +ZipFile: \|\n((?: {10}.*\n|\n)+)", template.read_text("utf-8"), re.MULTILINE)
    check(found is not None, f"{template} has no inline function")
    names: dict[str, Any] = {}
    with mock.patch.dict(sys.modules, modules or {}):
        exec(textwrap.dedent(found[1] if found else ""), names)
    return names
