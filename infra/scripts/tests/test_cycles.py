import tempfile
import unittest
from pathlib import Path
from unittest import mock

from scripts import cycles
from scripts.paths import ROOT

# The remaining cycles. The test fails for a new cycle, and for a listed one that no longer exists.
KNOWN = (ROOT / "infra" / "scripts" / "cycles.txt").read_text("utf-8").splitlines()


class Cycles(unittest.TestCase):
    def circles(self, files: dict[str, str]) -> list[list[str]]:
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(cycles, "ROOT", Path(folder)):
            for path, text in files.items():
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return cycles.circles(cycles.Crate(Path(folder)).edges())

    def test_list_is_complete(self) -> None:
        self.maxDiff = None
        self.assertEqual([", ".join(group) for group in cycles.all_circles()], KNOWN)

    def test_import_counts_for_defining_file(self) -> None:
        files = {
            "lib.rs": "mod a;\nmod b;\npub use self::a::A;\npub use self::b::B;\n",
            "a.rs": "use crate::B;\npub struct A(B);\n",
            "b.rs": "use super::{A as Other};\npub struct B;\nfn f(_: Other) {}\n",
        }
        self.assertEqual(self.circles(files), [["a.rs", "b.rs"]])

    def test_exports_tests_and_comments_do_not_count(self) -> None:
        files = {
            "lib.rs": "pub mod a;\npub use self::a::A;\n/// See [`crate::a::A`].\npub struct L;\n",
            "a.rs": "use crate::L;\npub struct A(L);\n",
            "b.rs": "pub struct B;\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}\n",
            "c.rs": "use crate::b::B;\npub struct C(B);\n",
        }
        self.assertEqual(self.circles(files), [])

    def test_path_inside_function_counts(self) -> None:
        files = {
            "lib.rs": "mod a;\nmod b;\n",
            "a.rs": "pub fn a() { super::b::b() }\n",
            "b.rs": "pub fn b() { crate::a::a() }\n",
        }
        self.assertEqual(self.circles(files), [["a.rs", "b.rs"]])
