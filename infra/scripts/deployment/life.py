"""Tests of a stack from a failing creation to its deletion."""

import json
from collections.abc import Callable
from pathlib import Path

import operate
from scripts import page
from scripts.deployment import hook, search
from scripts.deployment.progress import say
from scripts.deployment.stack import Stack, setting
from scripts.errors import Failure, check

Update = Callable[[Stack], None]
# Functions are created after the buckets and tables that their roles name.
NO_SUCH_LAYER = {"CollectorLayerArn": "arn:aws:lambda:us-east-1:000000000000:layer:none:1"}


def fail_to_create(stack: Stack) -> None:
    """Checks that a failed first creation leaves nothing, so that the name can be reused."""
    asked = dict(stack.parameters)
    stack.parameters |= NO_SUCH_LAYER
    try:
        stack.update()
    except Failure:
        say("a create failed, as it should")
    else:
        raise Failure("a create with a layer that is not there has succeeded")
    check(not stack.status(), f"the stack is still there, and {stack.status()}")
    left = kept(stack)
    check(not left, f"a create that failed has left {left}")
    stack.parameters = asked


def kept(stack: Stack) -> list[str]:
    """Returns the existing buckets and tables with the stack's name."""
    buckets = [one["Name"] for one in stack.client("s3").list_buckets()["Buckets"]]
    tables = stack.client("dynamodb").list_tables()["TableNames"]
    own = [one for one in [*buckets, *tables] if one.startswith(f"{stack.name}-")]
    return sorted(one for one in own if one != stack.code)


def rotate(stack: Stack, update: Update) -> None:
    """Checks that functions read the new value of a secret after a deployment with unchanged parameters."""
    before = versions(stack)
    update(stack)
    check(versions(stack) == before, "a deployment without changes has made new versions")
    address = setting("MONGODB_URI")
    put_secret(stack, "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100")
    update(stack)
    failed = {name for name, status in hook.statuses(stack).items() if status == "Failed"}
    # Only this function needs no database.
    wanted = set(hook.NAMES) - {"NotifyUpload"}
    check(failed == wanted, f"without a database, the test of a new version fails for {failed}")
    put_secret(stack, f"{address}{'&' if '?' in address else '/?'}appName=rotated")
    update(stack)
    hook.check_works(stack)
    same = [name for name, version in versions(stack).items() if version == before[name]]
    check(not same, f"after a rotation of the secret, these run the same version: {same}")
    say("the secret was rotated: every function has a new version")


def put_secret(stack: Stack, uri: str) -> None:
    stack.client("secretsmanager").put_secret_value(
        SecretId=stack.parameters["MongoSecretArn"], SecretString=json.dumps({"uri": uri})
    )


def versions(stack: Stack) -> dict[str, str]:
    """Returns the version behind the alias of each function."""
    lambda_ = stack.client("lambda")
    return {
        logical: lambda_.get_alias(FunctionName=stack.resources[logical].physical, Name="live")[
            "FunctionVersion"
        ]
        for logical in hook.NAMES
    }


def take_back(stack: Stack, update: Update, file: Path) -> None:
    """Checks that a rollback during an upload loses nothing and reads nothing twice."""
    stack.parameters["LogFilter"] = "debug"
    update(stack)
    studies = []

    def back() -> None:
        del stack.parameters["LogFilter"]
        update(stack)
        filters = {name: log_filter(stack, name) for name in hook.NAMES}
        check(set(filters.values()) == {"info"}, f"a value that was removed is not cleared: {filters}")

    for meanwhile in (back, lambda: None):
        _, found = search.import_file(stack, file, meanwhile)
        check(found["state"].lower() == "completed", f"the search failed: {found}")
        studies.append(found["studies"])
    check(studies[0] == studies[1] > 0, f"studies, with a rollback and without: {studies}")
    say("a version was rolled back during an upload")


def log_filter(stack: Stack, name: str) -> str:
    """Returns the log filter of the version behind the alias of a function."""
    function = stack.resources[name].physical
    found = stack.client("lambda").get_function_configuration(FunctionName=function, Qualifier="live")
    return str(found["Environment"]["Variables"]["RUST_LOG"])


def operate_it(stack: Stack) -> None:
    """Checks that commands of operators outside a VPC work through the function and record their author."""
    api = operate.StackApi(stack.client, stack.name)
    check(operate.run(api, ["GET", "/admin/failures/groups"]) is True, "failures cannot be listed")
    waiting = search.announce(stack, "waiting", [{"name": "late.ris", "size_bytes": 1}])["search_id"]
    check(operate.after_restore(api, ledger_alone=False, dry_run=False), "a search has to be retried")
    acts = api.found("GET", "/admin/audit")["items"]
    mine = [act for act in acts if act["to"] == waiting]
    arn = stack.client("sts").get_caller_identity()["Arn"]
    check([act["by"] for act in mine] == [arn], f"of search {waiting} {acts} tell {mine}, not of {arn}")
    say(f"operated from outside, by {arn}")


def close_api(stack: Stack, update: Update, key: str) -> None:
    """Checks that the function refuses requests of API Gateway without the page's key."""
    stack.parameters["PageKeySha256"] = page.sha256(key)
    update(stack)
    statuses = [health(stack, headers) for headers in ({}, {"x-page-key": "another"}, {"x-page-key": key})]
    check(statuses == [403, 403, 200], f"without a key, with another and with the page's key: {statuses}")
    hook.check_works(stack)
    say("the API refuses requests that bypass the page")


def health(stack: Stack, headers: dict[str, str]) -> int:
    """Returns the status of the health check, requested through API Gateway."""
    identity = stack.client("sts").get_caller_identity()
    event = operate.request("GET", "/health", None, identity, {})
    event["headers"] |= headers
    event["requestContext"]["apiId"] = "abc123"
    function = stack.resources["StartUpload"].physical
    found = stack.client("lambda").invoke(FunctionName=function, Qualifier="live", Payload=json.dumps(event))
    return int(json.loads(found["Payload"].read())["statusCode"])


def check_what_is_left(stack: Stack) -> None:
    """Checks that only resources with data remain after the stack is deleted."""
    left = kept(stack)
    buckets = [*stack.of_type("AWS::S3::Bucket").values(), *stack.buckets_of_page]
    wanted = [*buckets, *stack.of_type("AWS::DynamoDB::Table").values()]
    check(left == sorted(wanted), f"of {wanted} there is left {left}")
    for bucket in buckets:
        # The call fails if the bucket has no policy.
        stack.client("s3").get_bucket_policy(Bucket=bucket)
    queues = stack.client("sqs").list_queues(QueueNamePrefix=f"{stack.name}-").get("QueueUrls", [])
    check(not queues, f"queues are left: {queues}")
    functions = stack.client("lambda").list_functions()["Functions"]
    own = [one["FunctionName"] for one in functions if one["FunctionName"].startswith(f"{stack.name}-")]
    check(not own, f"functions are left: {own}")
    roles = stack.client("iam").list_roles()["Roles"]
    check(not [one for one in roles if one["RoleName"].startswith(stack.name)], "roles are left")
    say(f"left, as it should be: {', '.join(left)}")
