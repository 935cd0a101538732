import unittest
from unittest import mock

import capacity
from scripts.paths import ROOT


class Tables(unittest.TestCase):
    def test_document_has_tables_of_script(self) -> None:
        text = (ROOT / "docs" / "capacity.md").read_text("utf-8")
        self.assertIn(capacity.LIMITS[0].what, text)
        self.assertEqual(capacity.written(text), text, "run infra/capacity.py docs/capacity.md")

    def test_figure_beyond_limit_is_bold(self) -> None:
        limit = capacity.Limit("things", 0.5, 50, "here", "more")
        with mock.patch.object(capacity, "LIMITS", (limit,)):
            row = capacity.table().splitlines()[2]
            self.assertIn("| 0.5 | 50 | **5,000** |", row)
            self.assertTrue(row.endswith("| 50 (here) | 100 | more |"), row)

    def test_first_limit_to_be_reached_is_at_the_top(self) -> None:
        late = capacity.Limit("late", 0.5, 50, "here", "more")
        early = capacity.Limit("early", 0.5, 20, "here", "more")
        with mock.patch.object(capacity, "LIMITS", (late, early)):
            rows = capacity.table().splitlines()[2:]
            self.assertEqual([row.split("|")[1].strip() for row in rows], ["early", "late"])
