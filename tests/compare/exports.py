#!/usr/bin/env python3
"""Reads exports with readers of other projects, and compares the results with the stored studies.

    tools.py run readers -- python exports.py PROGRAM

PROGRAM is `search-import`. It imports the samples of this repository and texts that could break a format, and
exports them in every format. Each reader has to find the values of the JSON Lines export, except for those
that the format loses according to `docs/formats.md`. The fields of the samples themselves are compared with
those that the same readers find, and differences are shown. JavaScript readers are installed as in
`compare.py`.
"""

import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import compare
from compare import HERE, PLACE, ROOT, output

Study = dict[str, Any]
Read = Callable[[Path], list[Study]]

SAMPLES = ("pubmed.nbib", "psycinfo.ris", "library.tsv")
MAX_CELL = 32_767
HOSTILE = (
    "One. ER  - \nTY  - JOUR",
    "=1+1",
    "@SUM(A1)",
    "Braces {a} } { and \\alpha \\ backslashes",
    "100 % of $5 & #1_a ~ ^ x",
    "Quotes \"a\" 'b' `c`",
    "<b>bold</b> & <i>5 < 6</i>",
    "שלום עולם العربية",
    "_x000D_ is not a carriage return",
    "-- and --- dashes",
    "日本語 😀",
)


def hostile() -> list[dict[str, Any]]:
    """Returns CSL-JSON items, which can contain any text."""
    return [
        {
            "id": str(number),
            "type": "article-journal",
            "title": f"{text} {number}" if text[0] not in "=@" else text,
            "author": [
                {"family": "O'Neil {x}", "given": "Ann & Bob"},
                {"literal": "Health and Safety Group"},
            ],
            "container-title": f"Journal of {text}",
            "abstract": text + "\n" + "long word " * (4_000 if number == 0 else 10),
            "keyword": "Diabetes Mellitus, Type 2; other_word",
            "DOI": f"10.5555/a_b{number}",
            "URL": f"https://example.org/~a?b={number}&c=%20",
            "page": "12-19",
            "volume": "3",
            "issue": "4",
            "issued": {"date-parts": [[2020, 3, 5]]},
        }
        for number, text in enumerate(HOSTILE)
    ]


def line(text: object) -> str:
    """Normalizes white space."""
    return " ".join(str(text).split())


# TeX commands that the readers of BibTeX do not decode: a placeholder for each, and the printed
# character.
TEX_CHARACTERS = {
    "\\{": "{",
    "\\}": "}",
    "\\$": "$",
    "\\textbraceleft{}": "{",
    "\\textbraceright{}": "}",
    "\\textasciicircum{}": "^",
}
MARKS = {command: chr(0xE000 + number) for number, command in enumerate(TEX_CHARACTERS)}


def ris(file: Path) -> list[Study]:
    import rispy  # noqa: PLC0415

    return [
        {
            "key": entry.get("id"),
            "title": entry.get("title", ""),
            "authors": entry.get("authors", []),
            "year": entry.get("year", ""),
            "journal": entry.get("secondary_title", ""),
            "volume": entry.get("volume", ""),
            "issue": entry.get("number", ""),
            "doi": entry.get("doi", ""),
            "abstract": entry.get("abstract", ""),
            "keywords": entry.get("keywords", []),
            "database": entry.get("name_of_database", ""),
        }
        for entry in rispy.loads(file.read_bytes().decode())
    ]


def nbib(file: Path) -> list[Study]:
    import nbib  # noqa: PLC0415

    return [
        {
            "key": entry.get("study-key"),
            "title": entry.get("title", ""),
            "people": len(entry.get("authors", [])) + ("corporate_author" in entry),
            "year": entry.get("publication_date", "")[:4],
            "journal": entry.get("journal", ""),
            "volume": entry.get("journal_volume", ""),
            "issue": entry.get("journal_issue", ""),
            "pages": entry.get("pages", ""),
            "doi": entry.get("doi", ""),
            "pmid": str(entry.get("pubmed_id", "")),
            "abstract": entry.get("abstract", ""),
            "keywords": entry.get("keywords", []),
        }
        for entry in nbib.read(file.read_bytes().decode())
    ]


def bibtex(file: Path) -> list[Study]:
    from pybtex.database import parse_string  # noqa: PLC0415
    from pybtex.richtext import Text  # noqa: PLC0415

    def plain(text: str) -> str:
        for command, mark in MARKS.items():
            text = text.replace(command, mark)
        text = str(Text.from_latex(text))
        for command, mark in MARKS.items():
            text = text.replace(mark, TEX_CHARACTERS[command])
        return text

    found = []
    for key, entry in parse_string(file.read_text("utf-8"), "bibtex").entries.items():
        field = entry.fields.get
        found.append(
            {
                "key": key,
                "title": plain(field("title", "")),
                "people": len(entry.persons.get("author", [])),
                "year": field("year", ""),
                "journal": plain(field("journal") or field("booktitle") or ""),
                "volume": field("volume", ""),
                "issue": field("number", ""),
                "pages": field("pages", ""),
                "doi": field("doi", ""),
                "abstract": plain(field("abstract", "")),
                "pmid": field("pmid", ""),
                "database": field("database", ""),
            }
        )
    return found


def bibtexparser(file: Path) -> list[Study]:
    import bibtexparser as parser  # noqa: PLC0415
    from bibtexparser.middlewares import LatexDecodingMiddleware, SeparateCoAuthors  # noqa: PLC0415

    decoding = [SeparateCoAuthors(), LatexDecodingMiddleware()]
    text = file.read_text("utf-8")
    # It omits these characters.
    marks = {command: mark for command, mark in MARKS.items() if command.startswith("\\text")}
    for command, mark in marks.items():
        text = text.replace(command, mark)
    library = parser.parse_string(text, append_middleware=decoding)

    def plain(value: str) -> str:
        for command, mark in marks.items():
            value = value.replace(mark, TEX_CHARACTERS[command])
        return value

    if library.failed_blocks:
        raise AssertionError(f"{file}: {library.failed_blocks[0]}")
    found = []
    for entry in library.entries:
        field = {field.key: field.value for field in entry.fields}.get
        found.append(
            {
                "key": entry.key,
                "title": plain(field("title", "")),
                "people": len(field("author", [])),
                "journal": plain(field("journal") or field("booktitle") or ""),
                "abstract": plain(field("abstract", "")),
                **{name: field(name, "") for name in ("year", "volume", "pages", "doi", "pmid", "database")},
                "issue": field("number", ""),
            }
        )
    return found


def table(rows: Iterator[dict[str, str]]) -> list[Study]:
    def items(text: str) -> list[str]:
        return [item.strip() for item in text.split(";") if item.strip()]

    return [
        {
            "key": row["study_key"],
            "title": row["title"],
            "authors": items(row["authors"]),
            **{name: row[name] for name in ("year", "journal", "doi", "pmid", "database", "platform")},
            "abstract": row["abstract"],
            "keywords": items(row["keywords"]),
            "url": row["url"],
        }
        for row in rows
    ]


def pandas(file: Path) -> list[Study]:
    import pandas as pd  # noqa: PLC0415

    return table(iter(pd.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")))


def openpyxl(file: Path) -> list[Study]:
    from openpyxl import load_workbook  # noqa: PLC0415
    from openpyxl.utils.escape import unescape  # noqa: PLC0415

    sheet = load_workbook(file, read_only=True).worksheets[0]
    cells = iter(sheet.iter_rows())
    header = [str(cell.value) for cell in next(cells)]

    def rows() -> Iterator[dict[str, str]]:
        for row in cells:
            if any(
                cell.data_type not in "sn" or (cell.data_type == "n" and cell.value is not None)
                for cell in row
            ):
                raise AssertionError(f"{file}: a cell does not contain text: {row}")
            # Excel decodes these escapes of the standard itself.
            values = ["" if cell.value is None else unescape(str(cell.value)) for cell in row]
            yield dict(zip(header, values, strict=True))

    return table(rows())


def citation_js(form: str) -> Read:
    def read(file: Path) -> list[Study]:
        modules = str(PLACE / "node" / "node_modules")
        found: list[Study] = output(["node", HERE / "exports.js", form, file], NODE_PATH=modules)
        return found

    return read


def endnote_xml(file: Path) -> list[Study]:
    """Reads the elements with a parser that rejects XML that is not well-formed."""
    # The file was written by this project.
    records = ElementTree.parse(file).getroot().iter("record")

    def text(record: ElementTree.Element, path: str) -> str:
        return record.findtext(path) or ""

    return [
        {
            "key": text(record, "label"),
            "title": text(record, "titles/title"),
            "people": len(record.findall("contributors/authors/author")),
            "year": text(record, "dates/year"),
            "journal": text(record, "titles/secondary-title"),
            "volume": text(record, "volume"),
            "issue": text(record, "number"),
            "pages": text(record, "pages"),
            "doi": text(record, "electronic-resource-num"),
            "abstract": text(record, "abstract"),
            "url": text(record, "urls/related-urls/url"),
            "database": text(record, "remote-database-name"),
            "platform": text(record, "remote-database-provider"),
        }
        for record in records
    ]


READERS: tuple[tuple[str, str, Read], ...] = (
    ("ris", "rispy", ris),
    ("ris", "citation-js", citation_js("ris")),
    ("endnote-xml", "ElementTree", endnote_xml),
    ("nbib", "nbib", nbib),
    ("bibtex", "pybtex", bibtex),
    ("bibtex", "bibtexparser", bibtexparser),
    ("bibtex", "citation-js", citation_js("bibtex")),
    ("csl-json", "citation-js", citation_js("csl-json")),
    ("csv", "pandas", pandas),
    ("asreview", "pandas", pandas),
    ("xlsx", "openpyxl", openpyxl),
)


def wanted(study: Study, form: str) -> Study:
    """Returns the values that a reader should find for a study."""
    text = {
        name: str(study.get(name) or "") for name in ("title", "journal", "volume", "issue", "pages", "doi")
    }
    known = {
        **text,
        "key": study["study_key"],
        "year": str(study.get("year") or ""),
        "pmid": study.get("pmid", ""),
        "url": study.get("url", ""),
        "abstract": study.get("abstract", ""),
        "authors": study.get("authors", []),
        "keywords": study.get("keywords", []),
        "people": len(study.get("authors", [])),
        "database": study.get("database", ""),
        "platform": study.get("platform", ""),
    }
    if form == "csv":
        guarded = ("=", "+", "-", "@")
        for name, value in known.items():
            if isinstance(value, str) and value.startswith(guarded):
                known[name] = "'" + value
    return known


def differences(found: list[Study], studies: list[Study], form: str) -> list[str]:
    """Returns the differences between the values found and the studies."""
    if len(found) != len(studies):
        return [f"{len(found)} studies of {len(studies)}"]
    found_differences = []
    for one, study in zip(found, studies, strict=True):
        for name, value in one.items():
            expected = wanted(study, form)[name]
            same = (
                [line(item) for item in value] == [line(item) for item in expected]
                if isinstance(value, list)
                else is_same(line(value), line(expected), form)
            )
            if not same:
                found_differences.append(
                    f"{name} of {study['study_key']}: {str(value)[:90]!r}, not {str(expected)[:90]!r}"
                )
    return found_differences


def is_same(found: str, expected: str, form: str) -> bool:
    if form == "xlsx" and found.endswith(" […]"):
        return len(found.encode("utf-16-le")) // 2 <= MAX_CELL and expected.startswith(
            found.removesuffix(" […]")
        )
    return found == expected


def version(reader: str) -> str:
    if reader == "citation-js":
        return str(json.loads((HERE / "package.json").read_text())["dependencies"]["citation-js"])
    return platform.python_version() if reader == "ElementTree" else metadata.version(reader)


# Other readers of the files of databases, and the fields whose meaning does not depend on the database.
SAMPLE_READERS: tuple[tuple[str, str, Read], ...] = (
    (".ris", "rispy", ris),
    (".ris", "citation-js", citation_js("ris")),
    (".nbib", "nbib", nbib),
)
SAMPLE_FIELDS = ("title", "year", "volume", "issue", "doi", "people")


def agreement(found: list[Study], studies: list[Study]) -> tuple[int, int, list[str]]:
    """Returns the number of equal fields, of compared fields, and the differences.

    A field is compared if both readers found a value.
    """
    if len(found) != len(studies):
        return 0, 1, [f"{len(found)} records, not {len(studies)}"]
    equal, compared, texts = 0, 0, []
    for number, (one, study) in enumerate(zip(found, studies, strict=True), 1):
        known = wanted({"study_key": "", **study}, "samples")
        people = {"people": len(one.get("authors", []))}
        for name in SAMPLE_FIELDS:
            theirs, ours = line({**people, **one}.get(name) or ""), line(known[name] or "")
            # Other readers keep the address of the resolver.
            theirs = theirs.split("doi.org/")[-1] if name == "doi" else theirs
            if not theirs or not ours:
                continue
            compared += 1
            if theirs.casefold() == ours.casefold():
                equal += 1
            else:
                texts.append(f"{name} of record {number}: {ours[:60]!r}, there {theirs[:60]!r}")
    return equal, compared, texts


def compare_samples(program: Path, home: Path) -> None:
    """Compares the fields of sample files with those that other readers find, and shows the differences."""
    for ending, reader, read in SAMPLE_READERS:
        for name in sorted(name for name in SAMPLES if name.endswith(ending)):
            file, data = ROOT / "tests" / "samples" / name, home / f"{reader} {name}"
            report = output([program, "import", file, "--json", "--data-dir", data])
            exported = home / f"{reader} {name}.jsonl"
            wanted_file = ("--format", "jsonl", "--out", exported)
            output([program, "export", report["search_id"], *wanted_file, "--json", "--data-dir", data])
            studies = [json.loads(text) for text in exported.read_text("utf-8").splitlines()]
            try:
                equal, compared, texts = agreement(read(file), studies)
            # Readers fail on files of databases in many ways.
            except Exception as error:  # noqa: BLE001
                equal, compared, texts = 0, 0, [f"it cannot be read there: {type(error).__name__}"]
            print(compare.row(name, reader, f"{equal} of {compared} fields are equal"))
            for text in texts[:5]:
                print(f"    {text}")


def main(program: Path) -> int:
    PLACE.mkdir(parents=True, exist_ok=True)
    compare.install()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "hostile.json").write_text(json.dumps(hostile()))
        files = [*(ROOT / "tests" / "samples" / name for name in SAMPLES), home / "hostile.json"]
        data = ("--data-dir", home / "data")
        report = output(
            [program, "import", *files, "--source", "Embase", "--platform", "Ovid", "--json", *data]
        )
        search = report["search_id"]

        def export(form: str) -> Path:
            file = home / f"export.{form}"
            output([program, "export", search, "--format", form, "--out", file, "--json", *data])
            return file

        studies = [json.loads(text) for text in export("jsonl").read_text("utf-8").splitlines()]
        print(f"{len(studies)} studies")
        for form, reader, read in READERS:
            file = home / f"export.{form}"
            found_differences = differences(read(file if file.exists() else export(form)), studies, form)
            failed += bool(found_differences)
            verdict = "equal" if not found_differences else f"{len(found_differences)} differ"
            print(compare.row(form, f"{reader} {version(reader)}", verdict))
            for text in found_differences[:12]:
                print(f"    {text}")
        compare_samples(program, home)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
