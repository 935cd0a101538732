import re
import tomllib
import unittest
from pathlib import Path
from typing import Any

from scripts.paths import ROOT, tracked

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
# The cell of a crate whose dependencies are not listed.
MANY = "many"


def manifest(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def dependencies() -> dict[str, set[str]]:
    """Returns the dependencies between the crates of the workspace, by their folders, without tests."""
    packages = {
        path.parent: manifest(path)
        for path in tracked("*Cargo.toml")
        if path.parent != ROOT and not {"fuzz", "template"} & set(path.parts)
    }
    ours = {package["package"]["name"] for package in packages.values()}
    return {
        str(folder.relative_to(ROOT)): ours & set(package.get("dependencies", {}))
        for folder, package in packages.items()
    }


def code_map() -> dict[str, str]:
    """Returns the last column of the table of crates by the first."""
    row = r"^\| `((?:shared/|infra/|tests|functions)[^`]*)` \|.*\| ([^|]*) \|$"
    return dict(re.findall(row, ARCHITECTURE, re.MULTILINE))


class Architecture(unittest.TestCase):
    def test_crates_are_listed_with_dependencies(self) -> None:
        listed = {
            folder: set(re.findall(r"`([^`]+)`", cell)) for folder, cell in code_map().items() if cell != MANY
        }
        real = {folder: needed for folder, needed in dependencies().items() if code_map().get(folder) != MANY}
        self.maxDiff = None
        self.assertEqual(listed, real)

    def test_cited_tests_exist(self) -> None:
        self.assertGreater(len(named_tests(ARCHITECTURE)), 10)
        self.assertEqual(named_tests(ARCHITECTURE) - functions(), set())


class Faults(unittest.TestCase):
    def test_cited_tests_and_mutants_exist(self) -> None:
        page = (ROOT / "docs/faults.md").read_text("utf-8")
        self.assertGreater(len(named_tests(page)), 10)
        self.assertEqual(named_tests(page) - functions(), set())
        options = (ROOT / "tests/simulation/src/options.rs").read_text("utf-8")
        mutants = set(re.findall(r"^    (\w+)(?:\(.*\))?,$", options, re.MULTILINE))
        self.assertEqual(set(re.findall(r"`Mutant::(\w+)`", page)) - mutants, set())


def functions() -> set[str]:
    """Returns the names of all functions, including tests."""
    code = "\n".join(path.read_text("utf-8") for path in tracked("*.rs"))
    return set(re.findall(r"\bfn (\w+)", code))


def named_tests(page: str) -> set[str]:
    """Returns all names on a page that look like a test."""
    return set(re.findall(r"`([a-z]+(?:_[a-z0-9]+){3,})`", page))


class Links(unittest.TestCase):
    def test_links_lead_to_existing_headings(self) -> None:
        broken = [
            f"{page.relative_to(ROOT)}: {target}"
            for page in tracked("*.md")
            for target in links(page)
            if not leads_somewhere(page, target)
        ]
        self.assertEqual(broken, [])


def links(page: Path) -> list[str]:
    """Returns the links of a page within this repository."""
    # Brackets in code are not links.
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets: list[str] = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, heading = target.partition("#")
    file = page.parent / name if name else page
    return file.exists() and (not heading or heading in headings(file))


def headings(page: Path) -> set[str]:
    """Returns the anchors of a page's headings."""
    lines = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}
