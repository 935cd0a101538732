import unittest
from typing import Any

import exports


def study(**more: Any) -> exports.Study:
    return {"study_key": "k", "title": "T", "authors": ["A, B"], "year": 2020, **more}


class Differences(unittest.TestCase):
    def test_white_space_is_ignored(self) -> None:
        found = [{"key": "k", "title": " T\n", "authors": ["A,  B"], "year": "2020", "people": 1}]
        self.assertEqual(exports.differences(found, [study()], "ris"), [])

    def test_differing_fields_are_reported(self) -> None:
        found = [{"title": "U", "authors": [], "year": "2021"}]
        self.assertEqual(len(exports.differences(found, [study()], "ris")), 3)
        self.assertEqual(exports.differences([], [study()], "ris"), ["0 studies of 1"])

    def test_fields_that_both_readers_found_are_compared(self) -> None:
        found = [{"title": "t", "year": "2021", "doi": "", "authors": ["A, B"]}]
        equal, compared, texts = exports.agreement(found, [study(doi="10.5555/a")])
        self.assertEqual((equal, compared), (2, 3))
        self.assertIn("year of record 1", texts[0])
        self.assertEqual(exports.agreement([], [study()])[:2], (0, 1))

    def test_csv_values_are_guarded(self) -> None:
        found = [{"title": "'=1"}]
        self.assertEqual(exports.differences(found, [study(title="=1")], "csv"), [])
        self.assertEqual(len(exports.differences(found, [study(title="=1")], "asreview")), 1)

    def test_cells_are_cut_only_at_their_limit(self) -> None:
        long = "x" * 40_000
        cut = [{"title": long[: exports.MAX_CELL - 4] + " […]"}]
        self.assertEqual(exports.differences(cut, [study(title=long)], "xlsx"), [])
        self.assertEqual(len(exports.differences([{"title": "y […]"}], [study(title=long)], "xlsx")), 1)
        self.assertEqual(len(exports.differences([{"title": long}], [study(title=long + "y")], "xlsx")), 1)
