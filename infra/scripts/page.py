"""The page's files in the bucket that CloudFront reads."""

import hashlib
import html
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.errors import check
from scripts.paths import ROOT

DIST = ROOT / "infra" / "page" / "dist"
# Files that the build names by their content never change.
NAMED_BY_CONTENT = "assets/"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX = "index.html"
# Returns clients of AWS services by their names.
Clients = Callable[[str], Any]
Object = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """The address of a stack's page, and of its sign-in."""

    url: str
    bucket: str
    distribution: str
    # The secret with the key that CloudFront adds to requests.
    key_arn: str
    sign_in: Mapping[str, str]

    @classmethod
    def of(cls, clients: Clients, stack: str, scope_prefix: str) -> "Page":
        """Reads the stack of a page. Its application has the prefix of the scopes."""
        [found] = clients("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}
        given = {one["ParameterKey"]: one["ParameterValue"] for one in found.get("Parameters", [])}
        return cls(
            outputs["PageUrl"],
            outputs["PageBucketName"],
            outputs["PageDistributionId"],
            outputs["PageKeyArn"],
            {
                "url": given["SignInUrl"],
                "client": given["SignInClientId"],
                "scope": f"openid {scope_prefix}read {scope_prefix}write",
                # The page requests it when a user opens a screen for operators.
                "operator_scope": f"{scope_prefix}operate",
            },
        )


def key(clients: Clients, page: Page) -> str:
    """Returns the key that CloudFront adds to requests."""
    return str(clients("secretsmanager").get_secret_value(SecretId=page.key_arn)["SecretString"])


def sha256(page_key: str) -> str:
    """Returns the hash of a page's key, as the application's parameter PageKeySha256."""
    return hashlib.sha256(page_key.encode()).hexdigest()


def advice_about_key(stack: str, wanted: str, given: str) -> str | None:
    """Returns what an operator has to do about the key of the page, if anything."""
    if given == wanted:
        return None
    write = f'write PageKeySha256 = "{wanted}" into config/{stack}.toml, and run make deploy STACK={stack}'
    if given:
        return f"the API refuses the requests of this page, because it expects another key: {write}"
    return f"the API also accepts requests that bypass CloudFront. To refuse them, {write}"


def with_sign_in(page: str, sign_in: Mapping[str, str]) -> str:
    """Returns the page with the address of the sign-in, which `src/api/sign-in.ts` reads."""
    meta = f'<meta name="sign-in" content="{html.escape(json.dumps(dict(sign_in)))}" />'
    check(page.count("</head>") == 1, "the page has no head")
    return page.replace("</head>", f"{meta}</head>")


def objects(dist: Path, sign_in: Mapping[str, str]) -> Iterator[Object]:
    """Returns the objects to upload, the page itself last."""
    files = sorted(path for path in dist.rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: path.name == INDEX):
        key = path.relative_to(dist).as_posix()
        compressed = key.endswith(".gz")
        key = key.removesuffix(".gz")
        body = path.read_bytes()
        if key == INDEX:
            body = with_sign_in(body.decode(), sign_in).encode()
        yield {
            "Key": key,
            "Body": body,
            "ContentType": KINDS.get(Path(key).suffix, "application/octet-stream"),
            "CacheControl": FOR_EVER if key.startswith(NAMED_BY_CONTENT) else ASK_AGAIN,
            **({"ContentEncoding": "gzip"} if compressed else {}),
        }


def bring(clients: Clients, page: Page, dist: Path = DIST) -> int:
    """Uploads the files and invalidates the previous page in CloudFront. Returns the number of files."""
    s3, count = clients("s3"), 0
    for one in objects(dist, page.sign_in):
        s3.put_object(Bucket=page.bucket, **one)
        count += 1
    clients("cloudfront").create_invalidation(
        DistributionId=page.distribution,
        InvalidationBatch={
            "Paths": {"Quantity": 2, "Items": ["/", f"/{INDEX}"]},
            "CallerReference": uuid.uuid4().hex,
        },
    )
    return count
