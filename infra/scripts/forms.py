"""Uploads of files with the forms that the API returns."""

import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any

TIMEOUT_SECONDS = 60


def form_data(fields: Mapping[str, Any], name: str, content: bytes, edge: str) -> bytes:
    """Returns the body of a form with a file, which S3 requires as the last field."""
    head = "".join(
        f'--{edge}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in fields.items()
    )
    file = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return head.encode() + file.encode() + content + f"\r\n--{edge}--\r\n".encode()


def upload(form: Mapping[str, Any], name: str, content: bytes) -> None:
    """Uploads a file with the form of the announcement."""
    edge = uuid.uuid4().hex
    headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    request = urllib.request.Request(form["url"], form_data(form["fields"], name, content, edge), headers)
    urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).close()
