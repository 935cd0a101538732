import tempfile
import unittest
from pathlib import Path

import lines
from scripts.paths import ROOT


class Lines(unittest.TestCase):
    def test_document_has_table_of_script(self) -> None:
        text = (ROOT / "docs" / "steps.md").read_text("utf-8")
        self.assertIn(lines.table(), text, "run infra/lines.py docs/steps.md")

    def test_comments_and_empty_lines_do_not_count(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "example.rs")
            path.write_text("//! Doc.\n\nfn main() {\n    // Why.\n    run(); // now\n}\n", "utf-8")
            self.assertEqual(lines.count(path), 3)

    def test_list_is_shorter_than_machine(self) -> None:
        sizes = {name: lines.count(lines.SOURCES / file) for name, (file, _) in lines.VARIANTS.items()}
        self.assertLess(sizes["list of steps"], sizes["state machine"])
