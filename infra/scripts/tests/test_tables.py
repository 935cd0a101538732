import unittest

from scripts import tables
from scripts.errors import Failure

TEXT = "before\n<!-- prices: infra/costs.py -->\nold\n<!-- end of prices -->\nafter\n"


class Writing(unittest.TestCase):
    def written(self, text: str, content: str) -> str:
        return tables.written(text, "infra/costs.py", {"prices": content})

    def test_table_is_written_between_its_markers(self) -> None:
        marked = "<!-- prices: infra/costs.py -->\n\na \\1 | b\n\n<!-- end of prices -->"
        self.assertEqual(self.written(TEXT, "a \\1 | b"), f"before\n{marked}\nafter\n")

    def test_each_table_requires_its_markers_once(self) -> None:
        renamed = TEXT.replace("prices: ", "price: ")
        for text, count in ((renamed, 0), (TEXT + TEXT, 2)):
            with self.assertRaisesRegex(Failure, f'^expected one section "prices", found {count}$'):
                self.written(text, "new")
