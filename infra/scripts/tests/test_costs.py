import re
import unittest

import costs
from scripts.paths import ROOT

ALL = (
    costs.message,
    costs.message_on_dynamodb,
    costs.view_on_dynamodb,
    costs.search,
    costs.month,
)
TEXT = (ROOT / "docs" / "costs.md").read_text("utf-8")


class Tables(unittest.TestCase):
    def test_document_has_tables_of_script(self) -> None:
        self.assertIn("<!-- month: infra/costs.py -->", TEXT)
        self.assertEqual(costs.written(TEXT), TEXT, "run infra/costs.py docs/costs.md")

    def test_parts_add_up(self) -> None:
        for of in ALL:
            *parts, whole = re.findall(r"\| \**([0-9.]+)\** \|$", costs.table(of()), re.MULTILINE)
            self.assertAlmostEqual(sum(map(float, parts)), float(whole), places=2)

    def test_text_names_the_totals(self) -> None:
        for of in ALL:
            self.assertIn(f"USD {costs.total(of()):.2f}", TEXT)
