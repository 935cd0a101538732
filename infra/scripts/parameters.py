"""The parameters of a template, and the check whether CloudFormation accepts a value."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.errors import Failure, check

LIST = "CommaDelimitedList"


@dataclass(frozen=True)
class Parameter:
    name: str
    properties: Mapping[str, str | list[str]]

    def text(self, name: str) -> str | None:
        value = self.properties.get(name)
        return value if isinstance(value, str) else None

    @property
    def default(self) -> str | None:
        return self.text("Default")

    def fault(self, value: str) -> str | None:
        """Returns why CloudFormation rejects a value, or None if it accepts it."""
        values = value.split(",") if self.text("Type") == LIST else [value]
        reasons = (reason for one in values for reason in self.faults(one))
        reason = next(reasons, None)
        return reason and f"{self.name} has to be {reason}, and not {value!r}"

    def faults(self, value: str) -> Iterator[str]:
        allowed = self.properties.get("AllowedValues")
        if isinstance(allowed, list) and value not in allowed:
            yield f"one of {', '.join(allowed)}"
        if (pattern := self.text("AllowedPattern")) and not re.fullmatch(pattern, value):
            yield self.text("ConstraintDescription") or f"text like {pattern}"
        if (limit := self.text("MaxLength")) and len(value) > int(limit):
            yield self.text("ConstraintDescription") or f"at most {limit} characters"
        if self.text("Type") == "Number":
            yield from self.faults_of_number(value)

    def faults_of_number(self, value: str) -> Iterator[str]:
        if not re.fullmatch(r"-?[0-9]+", value):
            yield "a number"
            return
        if (least := self.text("MinValue")) and int(value) < int(least):
            yield f"at least {least}"
        if (most := self.text("MaxValue")) and int(value) > int(most):
            yield f"at most {most}"


Parameters = Mapping[str, Parameter]


def declared(template: Path) -> dict[str, Parameter]:
    """Returns the parameters of a template by their names."""
    return parse(template.read_text("utf-8"))


def parse(text: str) -> dict[str, Parameter]:
    """Reads the parameters of a template without a YAML library: each line is a name or a property."""
    found: dict[str, dict[str, str | list[str]]] = {}
    section = re.search(r"^Parameters:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    for line in section[1].splitlines() if section else []:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if name := re.fullmatch(r"  (\w+):", line):
            properties = found.setdefault(name[1], {})
        elif (pair := re.fullmatch(r"    (\w+): (.+)", line)) and found:
            properties[pair[1]] = scalar(pair[2])
        else:
            raise Failure(f"a parameter of a template has the line {line!r}")
    return {name: Parameter(name, properties) for name, properties in found.items()}


def scalar(text: str) -> str | list[str]:
    if quoted := re.fullmatch(r'("(?:[^"\\]|\\.)*")(?:\s+#.*)?', text):
        return str(json.loads(quoted[1]))
    if items := re.fullmatch(r"\[(.*)\](?:\s+#.*)?", text):
        return [item.strip().strip('"') for item in items[1].split(",")]
    return re.sub(r"\s+#.*", "", text)


def all_values(parameters: Parameters, given: Mapping[str, str]) -> dict[str, str]:
    """Returns a value for each parameter. New defaults arrive, and values that are not given are cleared."""
    values = {}
    for name, parameter in parameters.items():
        value = given.get(name, parameter.default)
        check(value is not None, f"{name} has no default: give a value")
        values[name] = str(value)
    return values
