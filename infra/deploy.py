#!/usr/bin/env python3
"""Deploys what was built to an environment of samconfig.toml, with more parameters than that has.

    tools.py run sam -- deploy.py [--review] ENVIRONMENT [NAME=VALUE ...]

`sam deploy --parameter-overrides` replaces the list of samconfig.toml as a whole; here it is added to, and
named by the parameter Release, without which a change of parameters does not reach the HTTP API. With
--review the change set is made and shown, and not executed. Nothing is asked: whoever wants to be asked uses
`sam deploy` itself.
"""

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from scripts import commands, console
from scripts.errors import check
from scripts.paths import ROOT

CONFIG = ROOT / "samconfig.toml"


def overrides(config: Mapping[str, Any], environment: str) -> dict[str, str]:
    """Returns the parameters that an environment sets."""
    check(environment in config, f"samconfig.toml has no environment {environment}")
    listed = config[environment].get("deploy", {}).get("parameters", {}).get("parameter_overrides", [])
    return dict(parameter(text) for text in listed)


def parameter(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    check(bool(name and separator), f"a parameter is NAME=VALUE, and not {text!r}")
    return name, value


def release(parameters: Mapping[str, str]) -> str:
    """Returns a name for these parameters, which changes with each of them."""
    listed = "\n".join(f"{name}={value}" for name, value in sorted(parameters.items()))
    return hashlib.sha256(listed.encode()).hexdigest()[:10]


def given(parameters: Mapping[str, str]) -> list[str]:
    """Returns the options of `sam deploy` for these parameters, with a Release unless they have one."""
    named = {"Release": release(parameters), **parameters}
    return ["--parameter-overrides", *(f"{name}={value}" for name, value in named.items())]


def command(environment: str, parameters: Mapping[str, str], *, is_review: bool) -> list[str]:
    asked = ["--no-execute-changeset"] if is_review else ["--no-confirm-changeset"]
    # Without changes, the stack is up to date, and the deployment does nothing.
    always = ["sam", "deploy", "--config-env", environment, "--no-fail-on-empty-changeset", *asked]
    return [*always, *given(parameters)]


def main(arguments: Sequence[str]) -> int:
    is_review = "--review" in arguments
    match [one for one in arguments if one != "--review"]:
        case [environment, *added]:
            config = tomllib.loads(CONFIG.read_text("utf-8"))
            parameters = overrides(config, environment) | dict(parameter(text) for text in added)
            run = command(environment, parameters, is_review=is_review)
            commands.openly(run, {**os.environ, "SAM_CLI_TELEMETRY": "0"})
            return 0
        case _:
            return console.usage(__doc__)


if __name__ == "__main__":
    console.start("deploy", main)
