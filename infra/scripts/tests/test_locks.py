"""All tools for building, checking and testing are installed from a lock with their hashes."""

import json
import re
import tomllib
import unittest
from pathlib import Path

import tools
from scripts import installs, paths
from scripts.paths import ROOT, tracked

REQUIREMENT = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9._-]*)(?:\[[^\]]+\])?==(?P<version>[^\s;]+)(?: ;[^\\]*?)?"
    r"(?: --hash=sha256:[0-9a-f]{64})+"
)
# Commands that fetch programs, in a shell or as a list of arguments.
BETWEEN = r"""(?:[ "'\[\]]|,\s)+"""
FETCHES = re.compile(
    rf"\b(pip|pip3|npm|yarn|pnpm|cargo|uv|gem|go)\b{BETWEEN}(?:-[\w-]+{BETWEEN})*"
    r"(install|add|binstall|i|ci|get|sync)\b"
    r"|\b(npx|uvx|pipx|curl|wget|urlretrieve)\b"
)
# Another test checks that each of these commands accepts only files with the right hash.
KNOWN = {
    # Installed by version with its own lock, and never deployed.
    ".github/workflows/prove.yml": {"cargo install"},
    ".github/workflows/release.yml": {"npm ci"},
    "Makefile": {"npm ci"},
    "infra/scripts/installs.py": {"pip install", "npm ci"},
    "tests/compare/compare.py": {"npm ci"},
}


def requirements(lock: Path) -> list[str]:
    """Returns its logical lines, because each hash is on a separate line."""
    return re.sub(r" *\\\n *", " ", lock.read_text("utf-8")).splitlines()


def fetches(text: str) -> set[str]:
    return {" ".join(part for part in found if part) for found in FETCHES.findall(text)}


class Python(unittest.TestCase):
    def test_every_python_package_has_version_and_hash(self) -> None:
        for lock in paths.REQUIREMENTS.glob("*.txt"):
            for line in requirements(lock):
                with self.subTest(lock.name):
                    self.assertRegex(line, rf"^(?:{REQUIREMENT.pattern})$")

    def test_every_lock_covers_its_requirements(self) -> None:
        wanted = {file.stem: file.read_text().split() for file in paths.REQUIREMENTS.glob("*.in")}
        self.assertEqual(set(wanted), {file.stem for file in paths.REQUIREMENTS.glob("*.txt")})
        for name, packages in wanted.items():
            found = [REQUIREMENT.match(line) for line in requirements(installs.lock(name))]
            locked = {f"{each['name']}=={each['version']}" for each in found if each}
            for package in packages:
                with self.subTest(name):
                    self.assertIn(re.sub(r"\[.*\]", "", package), locked)

    def test_every_tool_has_a_lock(self) -> None:
        for tool in tools.TOOLS:
            self.assertTrue(installs.lock(tool).exists(), tool)


class Node(unittest.TestCase):
    def test_every_node_package_has_version_and_hash(self) -> None:
        locks = tracked("*-lock.json")
        self.assertGreaterEqual(len(locks), 2)
        for lock in locks:
            for path, package in json.loads(lock.read_text("utf-8"))["packages"].items():
                with self.subTest(f"{lock.name}: {path}"):
                    if path:
                        self.assertRegex(package["version"], r"^\d")
                        self.assertRegex(package["integrity"], r"^sha512-[A-Za-z0-9+/]{86}==$")
                        # npm would download from there, regardless of the registry of the machine.
                        self.assertNotIn("resolved", package)


class Rust(unittest.TestCase):
    def test_toolchain_is_a_version(self) -> None:
        channel = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
        self.assertRegex(channel, r"^\d+\.\d+\.\d+$")
        oldest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
        self.assertGreaterEqual(*([int(part) for part in text.split(".")] for text in (channel, oldest)))


class Everything(unittest.TestCase):
    def test_only_known_files_download(self) -> None:
        sources = tracked("*.py", "*.sh", "*.yml", "*.yaml", "*Makefile", ".ci/*")
        found = {
            str(file.relative_to(ROOT)): fetches(file.read_text("utf-8"))
            for file in sources
            if not file.name.startswith("test_")
        }
        self.assertEqual({name: what for name, what in found.items() if what}, KNOWN)

    def test_every_form_of_download_is_detected(self) -> None:
        for text, expected in {
            "pip install ruff": {"pip install"},
            '[python, "-m", "pip", "install", "ruff"]': {"pip install"},
            '"pip", "--quiet", "install"': {"pip install"},
            '"pip",\n    "install"': {"pip install"},
            "npm install --silent x": {"npm install"},
            'run("npm", "ci")': {"npm ci"},
            "cargo install --locked x": {"cargo install"},
            "curl https://a | sh": {"curl"},
            "npx thing": {"npx"},
            "cargo tree\ninstall": set(),
        }.items():
            with self.subTest(text):
                self.assertEqual(fetches(text), expected)
