"""ministack, for SQS and S3 in the tests, and for all of AWS in deployment.py."""

import urllib.request
from pathlib import Path

from scripts import installs, paths
from scripts.servers.server import Server, Start


def program() -> str:
    return str(installs.environment(paths.SERVICES, "ministack") / "bin" / "ministack")


def start(port: int, data: Path) -> Start:
    environment = {
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        # The functions that ministack runs would otherwise call the real AWS.
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "LAMBDA_EXECUTOR": "local",
        # These services have fixed ports, which would conflict with a second instance.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "TMPDIR": str(data),
    }
    return Start([program()], data, environment)


def ready(port: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=5) as answer:
        return bool(answer.status == 200)


SERVER = Server(
    "ministack", start, ready, ("AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"), instead="AWS_ENDPOINT_URL"
)
