import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import diagram
from scripts import commands
from scripts.errors import Failure

PAGE = """before
<!-- diagram: begin -->
old
lines
<!-- diagram: end -->
between
<!-- table: begin -->
<!-- table: end -->
after
"""


class Replacement(unittest.TestCase):
    def test_text_outside_markers_is_kept(self) -> None:
        expected = PAGE.replace("old\nlines\n", "new\n").replace(
            "table: begin -->\n", "table: begin -->\nrows\n"
        )
        self.assertEqual(diagram.replaced(PAGE, {"diagram": "new\n", "table": "rows\n"}), expected)

    def test_content_is_inserted_unchanged(self) -> None:
        content = "a \\1 and \\g<2> and \\\n"
        self.assertIn(content, diagram.replaced(PAGE, {"diagram": content}))

    def test_repeated_replacement_changes_nothing(self) -> None:
        once = diagram.replaced(PAGE, {"diagram": "new\n"})
        self.assertEqual(diagram.replaced(once, {"diagram": "new\n"}), once)

    def test_each_section_is_required_once(self) -> None:
        for text, count in (("", 0), (PAGE + PAGE, 2)):
            with self.assertRaisesRegex(Failure, f'^expected one section "diagram", found {count}$'):
                diagram.replaced(text, {"diagram": "new\n"})


class Arguments(unittest.TestCase):
    def setUp(self) -> None:
        self.page = Path(self.enterContext(tempfile.TemporaryDirectory())) / "states.md"
        self.page.write_text(PAGE)
        self.output = self.enterContext(
            mock.patch.object(commands, "output", side_effect=["a --> b\n", "| a |\n"])
        )

    def test_arguments_name_program_and_file(self) -> None:
        self.assertEqual(diagram.main(["program", str(self.page)]), 0)
        self.assertIn("begin -->\n```mermaid\na --> b\n```\n<!-- diagram: end", self.page.read_text())
        self.assertIn("begin -->\n| a |\n<!-- table: end", self.page.read_text())
        command = ["program", "diagram", "--format", "mermaid"]
        self.assertEqual(self.output.call_args_list[0].args[0], command)

    def test_file_without_sections_is_unchanged(self) -> None:
        self.page.write_text("nothing")
        with self.assertRaises(Failure):
            diagram.main(["program", str(self.page)])
        self.assertEqual(self.page.read_text(), "nothing")

    def test_other_arguments_print_usage(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(diagram.main(["program"]), 2)
