import hashlib
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

import archive

NAMES = {"README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"}


class Archives(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "search-import"
        self.program.write_bytes(b"a program")

    def test_tar_has_an_executable_program_and_the_documents(self) -> None:
        packed = archive.pack(self.program, "x86_64-unknown-linux-gnu", self.folder)
        self.assertRegex(packed.name, r"^search-import-\d+\.\d+\.\d+-x86_64-unknown-linux-gnu\.tar\.gz$")
        with tarfile.open(packed) as tar:
            modes = {Path(entry.name).name: entry.mode for entry in tar}
        self.assertEqual(modes.keys(), NAMES | {"search-import"})
        self.assertEqual(modes["search-import"], 0o755)

    def test_windows_archive_is_a_zip(self) -> None:
        packed = archive.pack(self.program, "aarch64-pc-windows-msvc", self.folder)
        with zipfile.ZipFile(packed) as entries:
            self.assertEqual({Path(name).name for name in entries.namelist()}, NAMES | {"search-import"})

    def test_repeated_archive_is_identical(self) -> None:
        for target in ("x86_64-apple-darwin", "x86_64-pc-windows-msvc"):
            first = archive.pack(self.program, target, self.folder / "first").read_bytes()
            self.program.touch()
            again = archive.pack(self.program, target, self.folder / "again").read_bytes()
            self.assertEqual(hashlib.sha256(first).digest(), hashlib.sha256(again).digest(), target)

    def test_checksum_is_that_of_the_archive(self) -> None:
        packed = archive.pack(self.program, "x86_64-unknown-linux-gnu", self.folder)
        listed, name = Path(f"{packed}.sha256").read_text("utf-8").split()
        self.assertEqual((listed, name), (hashlib.sha256(packed.read_bytes()).hexdigest(), packed.name))


if __name__ == "__main__":
    unittest.main()
