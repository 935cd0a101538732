"""The template with the functions as the tests have built them.

What `make build` compiles for a deployment takes minutes. The functions that `make test` has compiled do the
same, so a rehearsal takes those. With FUNCTIONS=sam it takes what `sam build` compiles.
"""

import re
import shutil
from pathlib import Path

from scripts import commands
from scripts.deployment.program import program
from scripts.errors import check
from scripts.paths import ROOT

TEMPLATE = ROOT / "template.yaml"
# A function up to its properties, with the name of its program.
FUNCTION = re.compile(
    r"Metadata:\n +BuildMethod: rust-cargolambda\n +BuildProperties: { Binary: (\S+) }\n( +)Properties:\n"
)


def with_code(template: str) -> tuple[str, list[str]]:
    """Returns the template with a folder as each function's code, and the names of the programs."""
    names = FUNCTION.findall(template)
    text = FUNCTION.sub(lambda found: f"Properties:\n{found[2]}  CodeUri: {found[1]}\n", template)
    return text, [name for name, _indent in names]


def arrange(folder: Path) -> Path:
    """Writes the template and the programs into a folder, and returns the path of the template."""
    text, names = with_code(TEMPLATE.read_text("utf-8"))
    check(bool(names), f"{TEMPLATE.name} has no function that is built by cargo-lambda")
    for name in names:
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        bootstrap = place / "bootstrap"
        shutil.copyfile(program(name), bootstrap)
        # Most of a program of the tests is what debuggers read.
        commands.quietly(["strip", bootstrap], f"strip (on Debian: apt install binutils) of {name}")
        bootstrap.chmod(0o755)
    template = folder / TEMPLATE.name
    template.write_text(text, "utf-8")
    return template
