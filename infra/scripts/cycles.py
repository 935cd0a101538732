"""Finds the dependency cycles of each crate: groups of files that import names from each other in a loop.

An import counts for the file that defines the name, also if a module between them exports it again. Tests and
exports (`pub use`) do not count.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scripts.paths import ROOT

Edges = dict[str, set[str]]

DEFINITION = re.compile(
    r"^(?:pub(?:\([a-z: ]+\))? )?(?:const |async |unsafe )*"
    r"(?:struct|enum|trait|fn|const|static|type|union|macro_rules!) ?(?:mut )?(\w+)",
    re.MULTILINE,
)
USE = re.compile(r"^(pub(?:\([a-z: ]+\))? )?use ([^;]+);", re.MULTILINE)
TESTS = re.compile(
    r"^#\[cfg\(test\)\]\n(?:#\[.*\]\n)*(?:pub\([a-z]+\) )?mod \w+ \{.*", re.MULTILINE | re.DOTALL
)
COMMENT = re.compile(r"//.*")
# A path inside a function, such as `super::page::read(…)`.
INLINE = re.compile(r"\b((?:crate|super|self)(?:::\w+)+)")


def expand(tree: str) -> Iterator[tuple[str, ...]]:
    """Yields the paths of a use tree: `a::{b, c::d as e}` is `a::b` and `a::c::d`."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        if tree:
            yield tuple(part.strip() for part in tree.split(" as ")[0].split("::"))
        return
    prefix = tuple(part.strip() for part in head.rstrip(": \n").split("::") if part.strip())
    if head.startswith("::"):
        prefix = ("", *prefix)
    depth, start = 0, 0
    inner = rest[: rest.rindex("}")]
    for index, char in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            for path in expand(inner[start:index]):
                yield prefix + path
            start = index + 1


class Crate:
    """The modules of a crate, each with its file, its definitions and its re-exports."""

    def __init__(self, source: Path) -> None:
        self.files: dict[tuple[str, ...], Path] = {}
        self.texts: dict[tuple[str, ...], str] = {}
        self.defines: dict[tuple[str, ...], set[str]] = {}
        self.exports: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = defaultdict(dict)
        for file in sorted(source.rglob("*.rs")):
            parts = file.relative_to(source).with_suffix("").parts
            if parts[0] == "bin":
                continue
            module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
            text = COMMENT.sub("", TESTS.sub("", file.read_text()))
            self.files[module] = file
            self.texts[module] = text
            self.defines[module] = set(DEFINITION.findall(text))
        for module, text in self.texts.items():
            for exported, tree in USE.findall(text):
                for path in expand(tree):
                    if exported:
                        self.exports[module][path[-1]] = self.absolute(module, path)

    def absolute(self, module: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...]:
        """Returns a path from the root of the crate; one of another crate begins with `::`."""
        if path[0] == "crate":
            return path[1:]
        base = module
        while path and path[0] in ("super", "self"):
            base = base[:-1] if path[0] == "super" else base
            path = path[1:]
            if not path:
                return base
            if path[0] not in ("super", "self"):
                return base + path
        # Other names are child modules or external crates.
        return module + path if (*module, path[0]) in self.files else ("::", *path)

    def definer(
        self, path: tuple[str, ...], seen: frozenset[tuple[str, ...]] = frozenset()
    ) -> tuple[str, ...] | None:
        """Returns the module that defines the item of a path."""
        if path in seen or path[:1] == ("::",):
            return None
        if path in self.files:
            return path
        for length in range(len(path) - 1, -1, -1):
            module = path[:length]
            if module not in self.files:
                continue
            name = path[length]
            if name in self.defines[module]:
                return module
            onward = self.exports[module].get(name)
            if onward is not None:
                return self.definer(onward + path[length + 1 :], seen | {path})
            return module
        return None

    def edges(self) -> Edges:
        """Returns the files that each file imports from."""
        edges: Edges = defaultdict(set)
        for module, text in self.texts.items():
            paths = [path for exported, tree in USE.findall(text) if not exported for path in expand(tree)]
            inline = USE.sub("", text)
            paths += [tuple(match.split("::")) for match in INLINE.findall(inline)]
            for path in paths:
                named = path[:-1] if path[-1] == "*" else path
                target = self.definer(self.absolute(module, named))
                if target is not None and target != module:
                    edges[name(self.files[module])].add(name(self.files[target]))
        return edges


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def reachable(edges: Edges, start: str) -> set[str]:
    """Returns the files that a file depends on, directly or indirectly."""
    reached: set[str] = set()
    pending = [start]
    while pending:
        for target in edges.get(pending.pop(), set()) - reached:
            reached.add(target)
            pending.append(target)
    return reached


def circles(edges: Edges) -> list[list[str]]:
    """Returns the groups of files that depend on each other."""
    reached = {file: reachable(edges, file) for file in edges}
    in_circle = [file for file in edges if file in reached[file]]
    groups = {
        frozenset(other for other in reached[file] if file in reached.get(other, set())) for file in in_circle
    }
    return sorted(sorted(group) for group in groups)


def sources() -> list[Path]:
    """Returns the source folders of all crates, without tests."""
    manifests = [
        *ROOT.glob("functions/Cargo.toml"),
        *ROOT.glob("shared/**/Cargo.toml"),
        *ROOT.glob("infra/*/Cargo.toml"),
    ]
    manifests += ROOT.glob("tests/*/Cargo.toml")
    return [
        manifest.parent / "src"
        for manifest in manifests
        if (manifest.parent / "src").is_dir() and "fuzz" not in manifest.parts
    ]


def all_circles() -> list[list[str]]:
    return sorted(group for source in sources() for group in circles(Crate(source).edges()))


if __name__ == "__main__":
    for group in all_circles():
        print(", ".join(group))
