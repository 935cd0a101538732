"""The environments in the folder config: the parameters of a stack, in a file with the name of the stack."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.errors import Failure, check
from scripts.paths import ROOT

CONFIG = ROOT / "config"
# The name of the bucket contains this part.
STACK = re.compile(r"[a-z][a-z0-9-]{0,25}")


def read(stack: str, folder: Path = CONFIG) -> dict[str, str]:
    """Returns the parameters in the file of a stack."""
    check(STACK.fullmatch(stack) is not None, f"{stack!r} is not the name of a stack: {STACK.pattern}")
    file = folder / f"{stack}.toml"
    names = ", ".join(sorted(one.stem for one in folder.glob("*.toml")))
    check(file.is_file(), f"{file} does not exist. There are files for the stacks {names}")
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{file}: {error}") from error
    tables = set(content) - {"parameters", "limits"}
    check(not tables, f"{file} has something besides [parameters] and [limits]: {', '.join(sorted(tables))}")
    return {name: text(name, value) for name, value in content.get("parameters", {}).items()}


def text(name: str, value: Any) -> str:
    """Returns a value as CloudFormation receives it."""
    match value:
        case bool():
            return str(value).lower()
        case str() | int():
            return str(value)
        case list():
            return ",".join(text(name, one) for one in value)
    raise Failure(f"{name} is neither text, a number, true, false, nor a list of them")


def pairs(arguments: Sequence[str]) -> dict[str, str]:
    """Returns the parameters of a command line."""
    found = {}
    for argument in arguments:
        name, separator, value = argument.partition("=")
        check(bool(name and separator), f"a parameter is NAME=VALUE, and not {argument!r}")
        found[name] = value
    return found


def of_mongodb(value: str) -> dict[str, str]:
    """Returns the parameter for the address of MongoDB: the ARN of a secret, or a connection string."""
    if not value:
        return {}
    kinds = {"arn:": "MongoSecretArn", "mongodb": "MongoUri"}
    names = [name for start, name in kinds.items() if value.startswith(start)]
    check(bool(names), "MONGODB is the ARN of a secret, or a connection string without user and password")
    # The file may name the other kind, which this value replaces.
    return {**dict.fromkeys(kinds.values(), ""), names[0]: value}


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f", did you mean {close[0]}?" if close else ""
            raise Failure(f"no template has a parameter {name}{hint}")


def check_values(given: Mapping[str, str]) -> None:
    addresses = [name for name in ("MongoSecretArn", "MongoUri") if given.get(name)]
    check(
        len(addresses) == 1,
        "give one address of MongoDB: MONGODB, or MongoSecretArn or MongoUri in the file of the stack",
    )
