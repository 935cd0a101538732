"""The checks of `make lint-language`: phrases that technical English avoids, and the subjects of commits.

Phrases are counted in comments, documents and messages of each area of the tree. The recorded counts are a
budget (`infra/scripts/language.json`) that may only decrease.
"""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.errors import Failure
from scripts.paths import ROOT, tracked

BUDGET = ROOT / "infra" / "scripts" / "language.json"
# Subjects are checked from this day on.
SUBJECTS_SINCE = "2026-11-26T06:00:00Z"
MAX_SUBJECT = 72
MAX_SHOWN = 20

SUFFIXES = {".rs", ".md", ".py", ".svelte", ".ts"}
# Recorded outputs and this list.
EXCLUDED = re.compile(r"fixtures/|samples/|/dist/|scripts/language\.py|tests/test_language\.py")

# Phrases with their replacements.
PHRASES = {
    r"\bwho(ever|m)\b": "name the actor: the caller, the worker, the reviewer",
    r"\b(some|no|any)body\b": "name the actor, or use the passive",
    r"^what (?!are\b|if\b|do\b|does\b|about\b|happens\b|is it\b)": "begin with a noun or a verb",
    r"^of (?!course\b)": "begin with the subject",
    r"^how (many|much|often|long|far|large)\b[^?]*$": "begin with the quantity: the number of",
    r"\bof (which|whose)\b": "use a relative clause with a verb",
    r"\b(tells?|told)\b": "report, notify, distinguish",
    r"\b(is|was) said\b": "state, set, decide",
    r"\bg(iven?|ives|ave) (it |them )?up\b": "dead-letter, exhaust, abandon, time out",
    r"\banew\b": "again",
    r"\bmeanwhile\b": "in the meantime, concurrently",
    r"\b(go|goes|going|went) on\b": "continue, resume",
    r"\bput(s|ting)? (it |them )?back\b": "requeue, restore",
    r"\b(took|takes?|taken|taking) (it |them )?back\b": "delete, roll back, revoke",
    r"\bfor ever\b": "forever, indefinitely",
    r"\bbeside\b": "next to, in addition to, while",
    r"\blook(s|ed)? (at|through|whether|how)\b": "check, scan, inspect",
    r"\brelease before\b": "earlier version",
}
PATTERNS = {re.compile(phrase, re.IGNORECASE): advice for phrase, advice in PHRASES.items()}

TEXT_LITERAL = re.compile(r'"((?:[^"\\]|\\.){24,})"')
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\[*])")
NOT_IMPERATIVE = re.compile(r"^[a-z]+(?<!s)s$|^[a-z]+(ed|ing)$", re.IGNORECASE)
# Imperatives with the same ending as other forms.
IMPERATIVE = {"bring", "embed", "feed", "focus", "need", "shed", "speed", "string", "canvas", "seed", "bias"}


@dataclass(frozen=True)
class Mark:
    path: str
    sentence: str
    advice: str


def blocks(path: str, text: str) -> Iterator[str]:
    """Yields the texts of a file: paragraphs of Markdown, comments, and string literals of several words."""
    block: list[str] = []
    fenced = False
    for line in text.splitlines():
        if path.endswith(".md"):
            fenced ^= line.lstrip().startswith("```")
            plain = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", line)
            if fenced or plain != line or not line.strip() or line.lstrip().startswith(("|", "#", "<")):
                yield " ".join(block)
                block = []
            if line.lstrip().startswith("|") and not fenced:
                yield from line.split("|")
            elif not fenced and not line.lstrip().startswith(("#", "<", "```")):
                block.append(plain.strip())
            continue
        comment = re.match(r"\s*#\s?(.*)" if path.endswith(".py") else r"\s*(?:///|//!|//)\s?(.*)", line)
        if comment and comment.group(1).strip():
            block.append(comment.group(1).strip())
            continue
        yield " ".join(block)
        block = []
        yield from (literal for literal in TEXT_LITERAL.findall(line) if " " in literal)
    yield " ".join(block)


def marks(path: str, text: str) -> Iterator[Mark]:
    for block in blocks(path, text):
        for sentence in SENTENCE_END.split(block.strip()):
            if len(sentence.split()) < 3:
                continue
            advice = next((advice for pattern, advice in PATTERNS.items() if pattern.search(sentence)), None)
            if advice is not None:
                yield Mark(path, sentence, advice)


def area(path: str) -> str:
    """Returns the part of the tree that has its own budget: a crate, or a folder of documents."""
    parts = Path(path).parts
    depth = 3 if parts[0] == "shared" and parts[1] != "testing" else 2
    return "/".join(parts[: min(depth, len(parts) - 1)]) or path


def is_checked(path: str) -> bool:
    return Path(path).suffix in SUFFIXES and not EXCLUDED.search(path)


def all_marks() -> list[Mark]:
    files = {str(file.relative_to(ROOT)): file for file in tracked()}
    return [
        mark
        for path, file in files.items()
        if is_checked(path)
        for mark in marks(path, file.read_text("utf-8"))
    ]


def check_budget(found: list[Mark], allowed: dict[str, int]) -> None:
    """Raises an error that shows the marked sentences of the areas that exceed their budget.

    A budget that is larger than its area needs is an error too, so that it can only decrease.
    """
    counts = Counter(area(mark.path) for mark in found)
    exceeded = {name for name, count in counts.items() if count > allowed.get(name, 0)}
    if exceeded:
        shown = [
            f"{mark.path}: {mark.sentence[:160]}\n    {mark.advice}"
            for mark in found
            if area(mark.path) in exceeded
        ]
        totals = ", ".join(f"{name} {counts[name]} of {allowed.get(name, 0)}" for name in sorted(exceeded))
        raise Failure("\n".join([*shown[:MAX_SHOWN], f"more marked sentences than before: {totals}"]))
    unused = {name for name, count in allowed.items() if counts[name] < count}
    if unused:
        totals = ", ".join(f"{name} {counts[name]} of {allowed[name]}" for name in sorted(unused))
        raise Failure(f"fewer marked sentences than the budget: {totals}; run infra/language.py --update")


def budget() -> dict[str, int]:
    return dict(json.loads(BUDGET.read_text("utf-8")))


def write_budget(found: list[Mark]) -> None:
    counts = Counter(area(mark.path) for mark in found)
    BUDGET.write_text(json.dumps(dict(sorted(counts.items())), indent=2) + "\n")


def fault(subject: str) -> str | None:
    """Returns the problems of the subject of a commit."""
    area_of, colon, summary = subject.partition(": ")
    first = summary.split(" ")[0] if summary else ""
    if not colon or not re.fullmatch(r"[\w/., -]+", area_of):
        return "it is not `area: imperative summary`"
    if len(subject) > MAX_SUBJECT:
        return f"it has {len(subject)} characters, more than {MAX_SUBJECT}"
    if NOT_IMPERATIVE.match(first) and first.lower() not in IMPERATIVE:
        return f"`{first}` is not an imperative"
    return "it describes more than one change" if ";" in summary else None


def subjects() -> list[str]:
    command = ["git", "log", "--no-merges", f"--since={SUBJECTS_SINCE}", "--format=%s"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def check_subjects(listed: list[str]) -> None:
    faults = [f"{subject}: {why}" for subject in listed if (why := fault(subject)) is not None]
    if faults:
        raise Failure("\n".join(["commit subjects:", *faults]))
