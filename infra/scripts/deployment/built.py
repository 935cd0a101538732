"""The template with the functions that the tests have built.

Compiling for a deployment (`make build`) takes minutes. The functions compiled by `make test` behave the
same, so a rehearsal uses them. With FUNCTIONS=sam, it uses those compiled by `sam build`.
"""

import re
import shutil
import zipfile
from collections.abc import Collection
from pathlib import Path

from scripts import commands
from scripts.deployment.program import program
from scripts.deployment.progress import say
from scripts.errors import check
from scripts.paths import ROOT

TEMPLATE = ROOT / "template.yaml"
PAGE = ROOT / "infra" / "templates" / "page.yaml"
# Types for which ministack refuses the whole template.
UNKNOWN_TYPES = ("AWS::Logs::Delivery", "AWS::Logs::DeliveryDestination", "AWS::Logs::DeliverySource")
# The text of a resource, up to the next resource or section.
RESOURCE = re.compile(r"^  (\w+):\n    Type: (\S+)\n(?:(?:    .*)?\n)*", re.MULTILINE)
# The text of a function up to its properties, with the name of its program.
FUNCTION = re.compile(
    r"Metadata:\n +BuildMethod: rust-cargolambda\n +BuildProperties: { Binary: (\S+) }\n( +)Properties:\n"
)


def with_code(template: str) -> tuple[str, list[str]]:
    """Returns the template with an archive as each function's code, and the names of the programs."""
    names = FUNCTION.findall(template)
    text = FUNCTION.sub(lambda found: f"Properties:\n{found[2]}  CodeUri: {found[1]}.zip\n", template)
    return text, [name for name, _indent in names]


def arrange(folder: Path) -> Path:
    """Writes the template and the programs into a folder, and returns the path of the template."""
    text, names = with_code(TEMPLATE.read_text("utf-8"))
    check(bool(names), f"{TEMPLATE.name} has no function that is built by cargo-lambda")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        pack(program(name), folder / f"{name}.zip")
    template = folder / TEMPLATE.name
    template.write_text(text, "utf-8")
    return template


def pack(built: Path, archive: Path) -> None:
    """Packs a program once, because `sam deploy` packs a folder again in every deployment."""
    bootstrap = archive.with_suffix(".bootstrap")
    shutil.copyfile(built, bootstrap)
    # Most of the size of a program built for tests is debug information.
    commands.quietly(["strip", bootstrap], f"strip (on Debian: apt install binutils) of {built.name}")
    bootstrap.chmod(0o755)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.write(bootstrap, "bootstrap")
    bootstrap.unlink()


def without(template: str, types: Collection[str]) -> tuple[str, list[str]]:
    """Returns a template without the resources of some types, and the names of these."""
    removed = []

    def keep(resource: re.Match[str]) -> str:
        if resource[2] not in types:
            return resource[0]
        removed.append(resource[1])
        return ""

    return RESOURCE.sub(keep, template), removed


def arrange_page(folder: Path) -> Path:
    """Writes the template of the page without the resources that the substitute does not support."""
    text, removed = without(PAGE.read_text("utf-8"), UNKNOWN_TYPES)
    say(f"left out: types that the stand-in does not know ({', '.join(removed)})")
    folder.mkdir(parents=True, exist_ok=True)
    template = folder / PAGE.name
    template.write_text(text, "utf-8")
    return template
