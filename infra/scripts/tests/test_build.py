import contextlib
import io
import os
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import build
from scripts import commands, sbom
from scripts.errors import Failure

CRATE = sbom.Crate("functions", "0.1.0")
TREE = sbom.Tree({CRATE: ""}, {CRATE: set()})
MATERIALS = sbom.Build("x86_64-unknown-linux-gnu", "rustc 1", TREE, TREE, {})


def packed(name: str, size: int) -> build.Packed:
    return build.Packed(name, 2 * size, size, "abc")


class Archives(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.program = self.folder / "RunSaga" / "bootstrap"
        self.program.parent.mkdir()
        self.program.write_bytes(b"program" * 1000)

    def test_archive_depends_on_program_bytes_only(self) -> None:
        first = build.pack(self.program, self.folder, MATERIALS)
        archive = (self.folder / "run-saga.zip").read_bytes()
        os.utime(self.program, (0, 0))
        self.program.chmod(0o600)
        self.assertEqual(build.pack(self.program, self.folder, MATERIALS), first)
        self.assertEqual((self.folder / "run-saga.zip").read_bytes(), archive)
        self.program.write_bytes(b"another")
        self.assertNotEqual(build.pack(self.program, self.folder, MATERIALS).sha256, first.sha256)

    def test_archived_program_is_executable(self) -> None:
        build.pack(self.program, self.folder, MATERIALS)
        with zipfile.ZipFile(self.folder / "run-saga.zip") as archive:
            [entry] = archive.infolist()
            self.assertEqual(archive.read(entry), self.program.read_bytes())
        self.assertEqual((entry.filename, entry.date_time), ("bootstrap", (1980, 1, 1, 0, 0, 0)))
        self.assertEqual((entry.external_attr >> 16, entry.compress_type), (0o100755, zipfile.ZIP_DEFLATED))

    def test_archive_has_bill_of_materials(self) -> None:
        build.pack(self.program, self.folder, MATERIALS)
        bill = (self.folder / "run-saga.cdx.json").read_text("utf-8")
        self.assertEqual(bill, sbom.text("run-saga", self.program.read_bytes(), MATERIALS))

    def test_archive_is_reported_in_one_line(self) -> None:
        line = "run-saga             4.00 MB  zipped  2.00 MB  sha256 abc"
        self.assertEqual(str(packed("run-saga", 2_000_000)), line)


class Sizes(unittest.TestCase):
    def test_size_up_to_limit_is_accepted(self) -> None:
        build.check_sizes([packed("run-saga", build.LIMIT_BYTES)])

    def test_size_beyond_limit_is_refused_by_name(self) -> None:
        large = build.LIMIT_BYTES + 1
        with self.assertRaisesRegex(Failure, "^larger than 10 MB: a, c$"):
            build.check_sizes([packed("a", large), packed("b", 1), packed("c", large)])


class Names(unittest.TestCase):
    def test_archive_names_are_program_names(self) -> None:
        names = {"RunSaga": "run-saga", "StartUpload": "start-upload", "Parse": "parse"}
        self.assertEqual([build.function_name(name) for name in names], list(names.values()))


class Toolchains(unittest.TestCase):
    def test_unknown_processor_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "^unknown processor mips; expected one of arm64, x86_64$"):
            build.check_toolchain("mips")

    def test_missing_target_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as sysroot, mock.patch.object(commands, "output") as output:
            output.return_value = f"{sysroot}\n"
            with self.assertRaisesRegex(Failure, "rustup target add aarch64-unknown-linux-gnu$"):
                build.check_toolchain("arm64")
            Path(sysroot, "lib", "rustlib", "x86_64-unknown-linux-gnu").mkdir(parents=True)
            build.check_toolchain("x86_64")


class Arguments(unittest.TestCase):
    def test_arguments_name_one_processor_at_most(self) -> None:
        with mock.patch.object(build, "build") as called, contextlib.redirect_stderr(io.StringIO()):
            codes = [build.main(arguments) for arguments in ([], ["x86_64"], ["x86_64", "arm64"])]
        self.assertEqual(codes, [0, 0, 2])
        self.assertEqual(called.call_args_list, [mock.call("arm64"), mock.call("x86_64")])
