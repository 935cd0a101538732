#!/usr/bin/env python3
"""Uploads the page of an application to its stack, which `deploy.py --part page` has deployed.

    tools.py run sam -- python infra/deploy_page.py STACK

The files of `make page` go into the bucket of the page, index.html last, so that all files that it names
exist. Files of earlier builds remain, because a browser may have an earlier page open. The address of the
sign-in is written into the page. Prints the hash of the page's key if the application does not know it.
"""

import deploy
from scripts import aws, console, preflight
from scripts.errors import check
from scripts.page import DIST, Page, advice_about_key, bring, key, sha256


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        return console.usage(__doc__)
    account = deploy.own_account()
    check((DIST / "index.html").is_file(), f"{DIST} has no page: `make page` builds it")
    [stack] = arguments
    with aws.reported(f"uploading the page of {stack}"):
        application, page = read(account, stack)
        clients = account.clients(deploy.REGION_OF_PAGES)
        console.say(f"{bring(clients, page)} files are at {page.url}")
        given = application.parameters.get("PageKeySha256", "")
        advice = advice_about_key(stack, sha256(key(clients, page)), given)
        if advice:
            console.say(advice)
    return 0


def read(account: deploy.Account, stack: str) -> tuple[preflight.Deployed, Page]:
    """Returns the application and its page."""
    application = preflight.deployed(account.clients(), stack)
    check(application.exists, f"the stack {stack} does not exist")
    name = deploy.PARTS["page"].stack(stack, account.region)
    page = Page.of(account.clients(deploy.REGION_OF_PAGES), name, application.parameters["ScopePrefix"])
    return application, page


if __name__ == "__main__":
    console.start("deploy-page", main, __doc__)
