import unittest

from scripts import language
from scripts.errors import Failure


def advice(text: str, path: str = "docs/a.md") -> list[str]:
    return [mark.advice for mark in language.marks(path, text)]


class Marks(unittest.TestCase):
    def test_documents_comments_and_messages_are_read(self) -> None:
        sentence = "Nobody reads a file twice."
        for path, text in (
            ("a.md", sentence),
            ("a.md", f"| one | {sentence} |"),
            ("a.md", f"1. {sentence}"),
            ("a.rs", f"/// {sentence}"),
            ("a.rs", f'let text = "{sentence} It is read once.";'),
            ("a.py", f"# {sentence}"),
        ):
            self.assertEqual(len(advice(text, path)), 1, text)

    def test_sentence_spans_lines(self) -> None:
        self.assertEqual(len(advice("The file is given\nup after five attempts.")), 1)

    def test_code_and_plain_sentences_are_not_marked(self) -> None:
        for text in ("```\nnobody reads this code\n```", "A worker reads the file once.", "# What was found"):
            self.assertEqual(advice(text), [])

    def test_areas_are_crates_and_folders(self) -> None:
        areas = {
            "shared/engine/saga/src/lib.rs": "shared/engine/saga",
            "shared/testing/src/lib.rs": "shared/testing",
            "docs/usage.md": "docs",
            "docs/decisions/0001-a.md": "docs/decisions",
            "README.md": "README.md",
        }
        self.assertEqual({path: language.area(path) for path in areas}, areas)


class Budget(unittest.TestCase):
    def test_budget_may_only_decrease(self) -> None:
        found = list(language.marks("docs/a.md", "Nobody reads it twice."))
        language.check_budget(found, {"docs": 1})
        with self.assertRaisesRegex(Failure, "docs 1 of 0"):
            language.check_budget(found, {})

    def test_budget_that_is_too_large_is_an_error(self) -> None:
        found = list(language.marks("docs/a.md", "Nobody reads it twice."))
        with self.assertRaisesRegex(Failure, "infra 0 of 3"):
            language.check_budget(found, {"docs": 1, "infra": 3})


class Subjects(unittest.TestCase):
    def test_imperative_short_subject_is_accepted(self) -> None:
        for subject in ("saga: keep a claim", "cli tests: process each file", "docs: need fewer words"):
            self.assertIsNone(language.fault(subject), subject)

    def test_other_subjects_are_refused_with_reason(self) -> None:
        for subject, why in (
            ("keep a claim", "not `area"),
            ("saga: keeps a claim", "`keeps` is not an imperative"),
            ("saga: fixed a claim", "`fixed` is not an imperative"),
            ("saga: keep a claim; drop a token", "more than one"),
            ("saga: " + "a" * 70, "76 characters"),
        ):
            self.assertIn(why, str(language.fault(subject)))
