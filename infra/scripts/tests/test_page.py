import html
import json
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any, ClassVar

from scripts.errors import Failure
from scripts.page import Page, advice_about_key, bring, objects, with_sign_in

SIGN_IN = {"url": "https://sign-in.example", "client": "page", "scope": 'openid "a'}


class Amazon:
    """A stand-in for the clients of AWS."""

    def __init__(self, outputs: dict[str, str], parameters: dict[str, str]) -> None:
        self.outputs, self.parameters = outputs, parameters
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, _service: str) -> "Amazon":
        return self

    def describe_stacks(self, **_: str) -> Any:
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs.items()]
        given = [{"ParameterKey": key, "ParameterValue": value} for key, value in self.parameters.items()]
        return {"Stacks": [{"Outputs": outputs, "Parameters": given}]}

    def put_object(self, **given: Any) -> None:
        self.calls.append(("put", given))

    def create_invalidation(self, **given: Any) -> None:
        self.calls.append(("forget", given))


class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dist = Path(folder.name)
        (self.dist / "assets").mkdir()
        (self.dist / "assets" / "a-1.js.gz").write_bytes(b"compressed")
        (self.dist / "icon.svg").write_bytes(b"<svg/>")
        (self.dist / "index.html").write_text("<html><head></head></html>")

    def test_files_have_headers_of_local_server(self) -> None:
        found = {one.pop("Key"): one for one in objects(self.dist, SIGN_IN)}
        self.assertEqual(
            found["assets/a-1.js"],
            {
                "Body": b"compressed",
                "ContentType": "text/javascript; charset=utf-8",
                "CacheControl": "public, max-age=31536000, immutable",
                "ContentEncoding": "gzip",
            },
        )
        self.assertEqual(found["icon.svg"]["CacheControl"], "no-cache")
        self.assertNotIn("ContentEncoding", found["index.html"])

    def test_page_names_the_sign_in_address(self) -> None:
        page = with_sign_in("<html><head></head></html>", SIGN_IN)
        [content] = re.findall(r'<meta name="sign-in" content="([^"]*)" />', page)
        self.assertEqual(json.loads(html.unescape(content)), SIGN_IN)
        self.assertRaises(Failure, with_sign_in, "<html></html>", SIGN_IN)

    def test_page_is_uploaded_last_and_invalidated(self) -> None:
        amazon = Amazon({}, {})
        self.assertEqual(bring(amazon, Page("https://p", "b", "d", "k", SIGN_IN), self.dist), 3)
        self.assertEqual([call for call, _ in amazon.calls], ["put", "put", "put", "forget"])
        self.assertEqual(amazon.calls[2][1]["Key"], "index.html")
        self.assertEqual(amazon.calls[3][1]["InvalidationBatch"]["Paths"]["Items"], ["/", "/index.html"])


class Stacks(unittest.TestCase):
    PARAMETERS: ClassVar = {"SignInUrl": "https://sign-in.example", "SignInClientId": "page"}

    def test_stack_names_page_address_and_scope(self) -> None:
        outputs = {
            "PageBucketName": "b",
            "PageUrl": "https://p",
            "PageDistributionId": "d",
            "PageKeyArn": "k",
        }
        page = Page.of(Amazon(outputs, self.PARAMETERS), "stack", "a/")
        self.assertEqual((page.bucket, page.distribution, page.url), ("b", "d", "https://p"))
        self.assertEqual(page.sign_in["scope"], "openid a/read a/write")
        self.assertEqual(page.sign_in["operator_scope"], "a/operate")


class Key(unittest.TestCase):
    def test_operator_is_told_to_close_the_api(self) -> None:
        self.assertIn("bypass CloudFront", advice_about_key("reviews", "0a", "") or "")
        self.assertIn("refuses the requests", advice_about_key("reviews", "0a", "0b") or "")
        self.assertIsNone(advice_about_key("reviews", "0a", "0a"))


if __name__ == "__main__":
    unittest.main()
