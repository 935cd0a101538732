#!/usr/bin/env python3
"""Brings the page to a stack that was deployed with `Page=true`.

    tools.py run sam -- python infra/deploy_page.py STACK

What `make page` has built goes into the stack's bucket, the page itself last, so that nobody is shown one
whose files are not there yet. Files of earlier builds stay: somebody may have the page of yesterday open.
Where people sign in is written into the page, from the parameters of the stack.
"""

from scripts import console
from scripts.errors import Failure, check
from scripts.page import DIST, Page, bring


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        return console.usage(__doc__)
    try:
        import boto3  # noqa: PLC0415 - only the Python of sam has it
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ImportError:
        raise Failure("run this with the Python of sam: `make deploy-page STACK=…`") from None
    check((DIST / "index.html").is_file(), f"{DIST} has no page: `make page` builds it")
    try:
        page = Page.of(boto3.client, arguments[0])
        console.say(f"{bring(boto3.client, page)} files are at {page.url}")
    except (BotoCoreError, ClientError) as error:
        raise Failure(f"bringing the page to {arguments[0]}: {error}") from error
    return 0


if __name__ == "__main__":
    console.start("deploy-page", main)
