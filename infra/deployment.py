#!/usr/bin/env python3
"""Deploys the shipped template to a substitute for AWS, reads it back, and puts a file through it.

    services.py run -- tools.py run sam -- deployment.py

The functions are those that `make test` has built (`scripts/deployment/built.py`). What is deployed is read
back through the services' own interfaces and written as a template again, with which `dev check-template`
repeats its checks, so the deployed resources are compared with the expectations of the code.
Then a file is imported: announced over HTTP, uploaded with the form of the response, and stored as studies
in MongoDB. Before that, a creation fails on purpose and is repeated under the same name. Afterwards, a
version is rolled back during an import, and an operator uses commands that reach only the function
(`scripts/deployment/life.py`). With PROOF=deep, the secret is rotated, too, and the hook rejects versions
without a database.
At the end the stack receives a page, whose files are read back. Then it is deleted, and the remaining data
is checked. `tests/page` tests the sign-in, because the substitute has no CloudFront that answers. The user
pool of `infra/templates/sign-in.yaml` is deployed next to the stack, and its outputs are the stack's
parameters (`scripts/deployment/sign_in.py`).

The substitute has gaps. `scripts/deployment/gaps.py` fills and reports each of them; the template is not
changed for them.
"""

import time
from collections.abc import Sized

import deploy_page
from scripts import console, page, proof
from scripts.deployment import checks, hook, life, program, progress, reading, search, sign_in
from scripts.deployment.gaps import GAPS
from scripts.deployment.progress import say
from scripts.deployment.stack import Json, Stack, setting
from scripts.errors import Failure, check
from scripts.paths import ROOT

SAMPLE = ROOT / "tests" / "samples" / "pubmed.nbib"


def update(stack: Stack) -> None:
    """Deploys the stack with its parameters, and sets the properties that the substitute ignored."""
    stack.update()
    for fill in GAPS:
        say(f"filled: {fill.__doc__} ({', '.join(fill(stack)) or 'it was applied this time'})")


def compare(stack: Stack) -> None:
    checks.check_stack(stack)
    hook.check_works(stack)
    program.check_template(reading.template(stack))


def use(stack: Stack) -> None:
    search_id, found = search.import_file(stack, SAMPLE)
    environment = {
        **stack.environment(),
        "MONGODB_URI": setting("MONGODB_URI"),
        "MONGODB_DATABASE": stack.database,
    }
    check_search(found, program.studies(search_id, environment))


def check_search(found: Json, stored: Sized) -> None:
    check(found["state"].lower() == "completed", f"the search failed: {found}")
    check(len(stored) > 0, "MongoDB holds no studies of it")
    check(len(stored) == found["studies"], f"MongoDB holds {len(stored)} studies, and the API says {found}")
    say(f"{SAMPLE.name}: {len(stored)} studies in MongoDB")


def show_page(stack: Stack) -> None:
    """Deploys the page with a sign-in, and uploads its files."""
    stack.parameters |= sign_in.deploy(stack)
    update(stack)
    stack.deploy_page()
    _, shown = deploy_page.read(stack.account, stack.name)
    count = page.bring(stack.client, shown)
    key = page.key(stack.client, shown)
    checks.check_page(stack, shown, key)
    say(f"the page: {count} files")
    life.close_api(stack, update, key)


def deploy() -> None:
    began = time.monotonic()
    stack = Stack()
    try:
        stack.prepare()
        life.fail_to_create(stack)
        update(stack)
        compare(stack)
        use(stack)
        if proof.is_deep():
            life.rotate(stack, update)
            use(stack)
        life.take_back(stack, update, SAMPLE)
        life.operate_it(stack)
        show_page(stack)
    except Failure:
        progress.tell_what_waits(stack)
        raise
    finally:
        stack.remove()
    life.check_what_is_left(stack)
    say(f"deployed, compared and used in {time.monotonic() - began:.0f} s")


def main(arguments: list[str]) -> int:
    if arguments:
        return console.usage(__doc__)
    deploy()
    return 0


if __name__ == "__main__":
    console.start("deployment", main, __doc__)
