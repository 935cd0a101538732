import base64
import hashlib
import io
import json
import os
import platform
import shutil
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

from scripts import commands, installs, paths
from scripts.errors import Failure


class Once(unittest.TestCase):
    def setUp(self) -> None:
        self.mark = Path(self.enterContext(tempfile.TemporaryDirectory())) / "mark"
        self.say = self.enterContext(mock.patch.object(installs, "say"))

    def test_finished_installation_is_kept(self) -> None:
        install = mock.Mock()
        installs.once(self.mark, "a tool", install)
        installs.once(self.mark, "a tool", install)
        install.assert_called_once_with()
        self.say.assert_called_once_with("installing a tool (once)")

    def test_interrupted_installation_restarts(self) -> None:
        install = mock.Mock(side_effect=[KeyboardInterrupt(), Failure("no network"), None])
        for error in (KeyboardInterrupt, Failure):
            with self.assertRaises(error):
                installs.once(self.mark, "a tool", install)
            self.assertFalse(self.mark.exists())
        installs.once(self.mark, "a tool", install)
        self.assertTrue(self.mark.exists())

    def test_marker_appears_after_installation(self) -> None:
        installs.once(self.mark, "a tool", lambda: self.assertFalse(self.mark.exists()))


class VirtualEnvironments(unittest.TestCase):
    def test_environment_replaces_existing_folder(self) -> None:
        with mock.patch.object(commands, "quietly") as quietly:
            installs.create_venv(Path("/venv"))
        self.assertIn("--clear", quietly.call_args.args[0])


class Locked(unittest.TestCase):
    """Tests with their own folder of locks."""

    def setUp(self) -> None:
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(paths, "REQUIREMENTS", self.home))
        self.enterContext(mock.patch.object(installs, "say"))

    def lock(self, name: str, text: str) -> None:
        installs.lock(name).write_text(text)


class Environments(Locked):
    def setUp(self) -> None:
        super().setUp()
        self.create = self.enterContext(mock.patch.object(installs, "create_venv", side_effect=Path.mkdir))
        self.pip = self.enterContext(mock.patch.object(installs, "pip"))
        self.lock("a", "a==1\n")

    def test_environment_is_created_once(self) -> None:
        folders = {installs.environment(self.home, "a") for _ in range(2)}
        self.assertEqual(folders, {installs.folder(self.home, "a")})
        self.pip.assert_called_once_with(folders.pop(), "a")

    def test_environment_is_recreated_for_another_lock(self) -> None:
        first = installs.environment(self.home, "a")
        self.lock("a", "a==2\n")
        self.assertNotEqual(installs.environment(self.home, "a"), first)
        self.assertEqual(self.pip.call_count, 2)

    def test_environment_is_named_after_lock_and_python(self) -> None:
        name = installs.folder(self.home, "a").name
        self.assertRegex(name, rf"^a-[0-9a-f]{{12}}-py{platform.python_version()}$")

    def test_unfinished_environment_does_not_count(self) -> None:
        with self.assertRaises(Failure):
            installs.environment(self.home, "a", mock.Mock(side_effect=Failure("no zig")))
        self.assertFalse((installs.folder(self.home, "a") / "installed").exists())


def wheel(folder: Path, name: str, needs: str = "") -> str:
    """Writes an empty package, and returns its hash."""
    file = folder / f"{name}-1.0-py3-none-any.whl"
    meta = f"{name}-1.0.dist-info"
    required = f"Requires-Dist: {needs}\n" if needs else ""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{meta}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{required}")
        archive.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{meta}/RECORD", f"{name}.py,,\n{meta}/METADATA,,\n{meta}/WHEEL,,\n{meta}/RECORD,,\n"
        )
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Hashes(Locked):
    """Tests with a real pip, which finds two packages in a folder and uses no registry."""

    venv: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.venv = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "venv"
        installs.create_venv(cls.venv)

    def setUp(self) -> None:
        super().setUp()
        self.alone = wheel(self.home, "alone")
        self.needy = wheel(self.home, "needy", needs="alone")
        # Replaces the pip configuration of the machine, including its registry.
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        variables |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.home)}
        self.enterContext(mock.patch.dict(os.environ, variables, clear=True))
        self.addCleanup(self.remove, "alone", "needy")

    def installed(self, name: str) -> list[Path]:
        return list(self.venv.glob(f"lib/python*/site-packages/{name}*"))

    def remove(self, *names: str) -> None:
        for found in [path for name in names for path in self.installed(name)]:
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink()

    def install(self, *lines: str) -> None:
        self.lock("planted", "\n".join(lines))
        installs.pip(self.venv, "planted")

    def test_matching_hash_is_installed(self) -> None:
        self.install(f"alone==1.0 --hash=sha256:{self.alone}", f"needy==1.0 --hash=sha256:{self.needy}")
        self.assertTrue(self.installed("alone"))
        self.assertTrue(self.installed("needy"))

    def test_differing_hash_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "DO NOT MATCH THE HASHES"):
            self.install(f"alone==1.0 --hash=sha256:{self.needy}")
        self.assertEqual(self.installed("alone"), [])

    def test_missing_hash_is_refused(self) -> None:
        for line in ("alone==1.0", "alone"):
            with self.subTest(line), self.assertRaisesRegex(Failure, "--require-hashes mode"):
                self.install(line)
        self.assertEqual(self.installed("alone"), [])

    def test_source_distribution_is_refused(self) -> None:
        file = self.home / "source-1.0.tar.gz"
        with tarfile.open(file, "w:gz"):
            pass
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        with self.assertRaisesRegex(Failure, "No matching distribution found for source==1.0"):
            self.install(f"source==1.0 --hash=sha256:{digest}")

    def test_unlocked_dependency_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "needy 1.0 requires alone, which is not installed"):
            self.install(f"needy==1.0 --hash=sha256:{self.needy}")
        self.assertEqual(self.installed("alone"), [])


PLACE = "file:alone-1.0.0.tgz"


def tarball(folder: Path) -> str:
    """Writes a package for npm, and returns its hash in npm's format."""
    file = folder / "alone-1.0.0.tgz"
    content = b'{"name": "alone", "version": "1.0.0", "scripts": {"install": "touch ran"}}'
    entry = tarfile.TarInfo("package/package.json")
    entry.size = len(content)
    with tarfile.open(file, "w:gz") as archive:
        archive.addfile(entry, io.BytesIO(content))
    return f"sha512-{base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()}"


class Npm(unittest.TestCase):
    """Tests with a real npm and a package in a file."""

    def setUp(self) -> None:
        self.home = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.hash = tarball(self.home)
        self.alone = self.home / "node_modules" / "alone"

    def install(self, integrity: str) -> None:
        package = {"version": "1.0.0", "resolved": PLACE, "hasInstallScript": True, "integrity": integrity}
        self.install_locked({"node_modules/alone": package})

    def install_locked(self, packages: dict[str, Any]) -> None:
        root = {"name": "planted", "dependencies": {"alone": PLACE}}
        lock = {"name": "planted", "lockfileVersion": 3, "packages": {"": root, **packages}}
        file = self.home / "lock.json"
        file.write_text(json.dumps(lock))
        installs.npm(self.home, file, "a planted package")

    def test_npm_checks_hashes_without_scripts(self) -> None:
        self.install(self.hash)
        self.assertEqual([file.name for file in self.alone.iterdir()], ["package.json"])

    def test_npm_refuses_another_hash(self) -> None:
        other = f"sha512-{base64.b64encode(bytes(64)).decode()}"
        with self.assertRaisesRegex(Failure, "EINTEGRITY"):
            self.install(other)
        self.assertFalse(self.alone.exists())

    def test_npm_refuses_incomplete_lock(self) -> None:
        with self.assertRaisesRegex(Failure, "^npm ci of a planted package failed"):
            self.install_locked({})
        self.assertFalse(self.alone.exists())

    def test_missing_npm_is_reported(self) -> None:
        with (
            mock.patch.object(shutil, "which", return_value=None),
            self.assertRaisesRegex(Failure, "^a planted package needs npm: install Node.js$"),
        ):
            self.install(self.hash)


class Commands(unittest.TestCase):
    def test_last_line_comes_first(self) -> None:
        self.assertEqual(commands.summary("one\n\ntwo\nthree\n"), "three\none\ntwo")

    def test_summary_is_limited(self) -> None:
        lines = commands.summary("\n".join(str(number) for number in range(100))).splitlines()
        self.assertEqual((lines[0], lines[1], lines[-1], len(lines)), ("99", "85", "98", 15))

    def test_silent_program_has_summary(self) -> None:
        self.assertEqual(commands.summary("\n"), "no output")

    def test_missing_program_is_a_failure(self) -> None:
        for run in (commands.openly, commands.output):
            with self.assertRaisesRegex(Failure, "/no-such-program could not be started"):
                run(["/no-such-program"])

    def test_failing_program_is_named(self) -> None:
        with self.assertRaisesRegex(Failure, "^sh -c exit 3 ended with 3$"):
            commands.output(["sh", "-c", "exit 3", "more"])
        with self.assertRaisesRegex(Failure, "^it failed: broken$"):
            commands.quietly(["sh", "-c", "echo broken >&2; exit 3"], "it")
