import copy
import json
import re
import subprocess
import tomllib
import unittest
from typing import Any

from build import TARGETS
from scripts import sbom
from scripts.errors import Failure
from scripts.paths import ROOT
from scripts.sbom import Crate

OURS, JSON, MACRO = Crate("ours", "0.1.0"), Crate("serde_json", "1.0.0"), Crate("derive", "2.0.0+x")
TEXT = """\
0ours v0.1.0 (/home/somebody/ours)\t
1derive v2.0.0+x (proc-macro)\tMIT/Apache-2.0
2serde_json v1.0.0\tMIT OR Apache-2.0
1serde_json v1.0.0\tMIT OR Apache-2.0 (*)
"""
TREE = sbom.parse_tree(TEXT)
LINKED = sbom.parse_tree("0ours v0.1.0 (/home/somebody/ours)\t\n1serde_json v1.0.0\tMIT OR Apache-2.0\n")
BUILD = sbom.Build("t", "rustc 1", TREE, LINKED, {JSON: "aa", MACRO: "bb"})


class Trees(unittest.TestCase):
    def test_tree_has_licences_and_dependencies(self) -> None:
        licenses = {OURS: "", MACRO: "MIT/Apache-2.0", JSON: "MIT OR Apache-2.0"}
        self.assertEqual(TREE, sbom.Tree(licenses, {OURS: {MACRO, JSON}, MACRO: {JSON}, JSON: set()}))

    def test_malformed_tree_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "is not understood: 'warning: odd'"):
            sbom.parse_tree(TEXT + "warning: odd\n")


class Bills(unittest.TestCase):
    def setUp(self) -> None:
        self.bill = sbom.bill("run-saga", b"program", BUILD)
        self.components = {each["name"]: each for each in self.bill["components"]}

    def test_crates_have_version_licence_and_checksum(self) -> None:
        expected = {
            "type": "library",
            "bom-ref": "pkg:cargo/serde_json@1.0.0",
            "name": "serde_json",
            "version": "1.0.0",
            "scope": "required",
            "hashes": [{"alg": "SHA-256", "content": "aa"}],
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "purl": "pkg:cargo/serde_json@1.0.0",
        }
        self.assertEqual(self.components["serde_json"], expected)

    def test_own_crates_are_not_published_ones(self) -> None:
        ours = self.components["ours"]
        self.assertEqual(ours["purl"], "pkg:generic/search-import/ours@0.1.0")
        self.assertEqual({"hashes", "licenses"} & set(ours), set())

    def test_build_dependencies_are_distinguished(self) -> None:
        scopes = {name: each["scope"] for name, each in self.components.items()}
        self.assertEqual(scopes, {"ours": "required", "serde_json": "required", "derive": "excluded"})

    def test_licences_and_versions_follow_standards(self) -> None:
        self.assertEqual(self.components["derive"]["licenses"], [{"expression": "MIT OR Apache-2.0"}])
        self.assertEqual(self.components["derive"]["purl"], "pkg:cargo/derive@2.0.0%2Bx")

    def test_every_crate_is_reachable_from_function(self) -> None:
        graph = {each["ref"]: each["dependsOn"] for each in self.bill["dependencies"]}
        ours, macro, json_ = (self.components[name]["bom-ref"] for name in ("ours", "derive", "serde_json"))
        self.assertEqual(graph, {"run-saga": [ours], ours: [macro, json_], macro: [json_], json_: []})

    def test_bill_depends_on_its_content_only(self) -> None:
        first = sbom.text("run-saga", b"program", BUILD)
        self.assertEqual(sbom.text("run-saga", b"program", copy.deepcopy(BUILD)), first)
        others = [
            sbom.bill("other", b"program", BUILD),
            sbom.bill("run-saga", b"another", BUILD),
            sbom.bill("run-saga", b"program", sbom.Build("t", "rustc 2", TREE, LINKED, {})),
        ]
        serials = {each["serialNumber"] for each in [*others, json.loads(first)]}
        self.assertEqual(len(serials), 4)

    def test_bill_contains_no_local_path(self) -> None:
        self.assertNotIn("/home", sbom.text("run-saga", b"program", BUILD))


def listed(target: str, edges: str) -> set[tuple[str, str]]:
    """Returns cargo's list of crates, parsed in a different way."""
    command = ["cargo", "tree", "--locked", "--package", "functions", "--features", "lambda"]
    command += ["--edges", edges, "--target", target, "--prefix", "none"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^(\S+) v(\S+)", printed, re.MULTILINE))


def names(components: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(each["name"], each["version"]) for each in components}


class Functions(unittest.TestCase):
    """Tests of the bills of the real functions."""

    def setUp(self) -> None:
        self.bills = {
            target: sbom.bill("run-saga", b"", sbom.read_build(target))["components"]
            for target in TARGETS.values()
        }

    def test_functions_match_cargo(self) -> None:
        for target, components in self.bills.items():
            with self.subTest(target):
                self.assertGreater(len(components), 200)
                self.assertEqual(len(names(components)), len(components))
                self.assertEqual(names(components), listed(target, "normal"))
                inside = [each for each in components if each["scope"] == "required"]
                self.assertEqual(names(inside), listed(target, "normal,no-proc-macro"))

    def test_crates_have_licence_and_checksum(self) -> None:
        packages = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]
        locked = {(each["name"], each["version"]): each.get("checksum") for each in packages}
        for components in self.bills.values():
            for each in components:
                with self.subTest(each["bom-ref"]):
                    checksum = locked[each["name"], each["version"]]
                    found = each.get("hashes", [{"content": None}])[0]["content"]
                    self.assertEqual(found, checksum)
                    self.assertEqual(each["purl"].startswith("pkg:cargo/"), checksum is not None)
                    self.assertIn("licenses", each)
