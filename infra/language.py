#!/usr/bin/env python3
"""Checks the language of comments, documents and messages against a budget, and the subjects of commits.

language.py            exits with an error if an area has more marked sentences than its budget
language.py --update   records the counts of today as the budget
language.py --show     lists every marked sentence
"""

from scripts import console, language


def main(arguments: list[str]) -> int:
    found = language.all_marks()
    match arguments:
        case []:
            language.check_budget(found, language.budget())
            language.check_subjects(language.subjects())
        case ["--update"]:
            language.write_budget(found)
        case ["--show"]:
            for mark in found:
                print(f"{mark.path}: {mark.sentence[:200]}\n    {mark.advice}")
        case _:
            return console.usage(__doc__)
    print(f"{len(found)} marked sentences")
    return 0


if __name__ == "__main__":
    console.start("language", main, __doc__)
