import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import deploy
from scripts import stamp
from scripts.errors import Failure
from scripts.paths import ROOT


class Stamps(unittest.TestCase):
    def setUp(self) -> None:
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("template.yaml", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"):
            (self.root / name).write_text(name)
        for name in ("functions", "shared"):
            (self.root / name / "src").mkdir(parents=True)
            (self.root / name / "src" / "lib.rs").write_text("//! A crate.")
        self.stamp = self.root / "made-of.json"

    def fault(self, architecture: str = "arm64") -> str:
        return str(stamp.fault(architecture, self.stamp, self.root))

    def build(self) -> None:
        stamp.write(stamp.fingerprint(self.root), "arm64", self.stamp)

    def test_build_of_these_sources_is_accepted(self) -> None:
        self.build()
        # A checkout of the same commit has other times.
        os.utime(self.root / "template.yaml", (0, 0))
        (self.root / "shared" / ".DS_Store").write_text("")
        self.assertEqual(self.fault(), "None")

    def test_missing_build_is_refused(self) -> None:
        self.assertEqual(self.fault(), "nothing is built: run `make build ARCHITECTURE=arm64`")

    def test_build_of_other_sources_is_refused(self) -> None:
        for name in ("template.yaml", "Cargo.lock", "functions/src/lib.rs", "shared/src/new.rs"):
            self.build()
            (self.root / name).write_text("changed")
            self.assertRegex(self.fault(), "from other sources or another template.yaml: run `make build")

    def test_renamed_source_is_another_source(self) -> None:
        self.build()
        (self.root / "shared" / "src" / "lib.rs").rename(self.root / "shared" / "src" / "main.rs")
        self.assertRegex(self.fault(), "from other sources")

    def test_build_for_another_processor_is_refused(self) -> None:
        self.build()
        self.assertRegex(self.fault("x86_64"), "built for arm64, and Architecture is x86_64: run `make")

    def test_sources_of_this_repository_exist(self) -> None:
        self.assertLess({"template.yaml", "Cargo.lock"}, {path.name for path in stamp.files(ROOT)})
        self.assertTrue(all((ROOT / name).exists() for name in stamp.SOURCES))


class Deployment(unittest.TestCase):
    def test_deployment_checks_the_processor_of_the_build(self) -> None:
        asked = list[str]()
        with mock.patch.object(stamp, "fault", asked.append):
            deploy.check_built({})
            deploy.check_built({"Architecture": "x86_64"})
        self.assertEqual(asked, ["arm64", "x86_64"])
        with mock.patch.object(stamp, "fault", return_value="nothing is built"), self.assertRaises(Failure):
            deploy.check_built({})
