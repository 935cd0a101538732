"""Checks of deployed resources that the template does not show."""

import json
from collections.abc import Sequence

from scripts.deployment.progress import say
from scripts.deployment.stack import Client, Json, Stack
from scripts.errors import check
from scripts.page import DIST, Page, objects


def check_stack(stack: Stack) -> None:
    check_tables(stack)
    check_queues(stack)
    for bucket in stack.of_type("AWS::S3::Bucket").values():
        check_bucket(stack.client("s3"), bucket)
    check_routes(stack)


def check_tables(stack: Stack) -> None:
    for table in stack.of_type("AWS::DynamoDB::Table").values():
        state = stack.client("dynamodb").describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        check(state.get("AttributeName") == "expires_at", f"{table} does not expire its items")


def check_queues(stack: Stack) -> None:
    for logical, url in stack.of_type("AWS::SQS::Queue").items():
        answer = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        check(answer["Attributes"].get("SqsManagedSseEnabled") == "true", f"{logical} is not encrypted")


def check_bucket(s3: Client, bucket: str) -> None:
    check(s3.get_bucket_versioning(Bucket=bucket).get("Status") == "Enabled", "the bucket keeps no versions")
    block = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    check(all(block.values()), "the bucket is not private")
    # The call fails if the bucket is not encrypted.
    s3.get_bucket_encryption(Bucket=bucket)
    check(
        refuses_plain_http(json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])),
        "the bucket takes requests without TLS",
    )
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    check(any("AbortIncompleteMultipartUpload" in rule for rule in rules), "unfinished uploads stay forever")


def refuses_plain_http(policy: Json) -> bool:
    """Returns whether the policy of a bucket denies only requests without TLS."""
    denied = [one["Condition"]["Bool"] for one in policy["Statement"] if one["Effect"] == "Deny"]
    return [str(one["aws:SecureTransport"]).lower() for one in denied] == ["false"]


def check_routes(stack: Stack) -> None:
    [api_id] = stack.of_type("AWS::ApiGatewayV2::Api").values()
    routes = stack.client("apigatewayv2").get_routes(ApiId=api_id)["Items"]
    check(not open_routes(routes), f"open to everybody: {open_routes(routes)}")
    say(f"routes: {', '.join(sorted(one['RouteKey'] for one in routes))}")


def open_routes(routes: Sequence[Json]) -> list[str]:
    return [one["RouteKey"] for one in routes if one.get("AuthorizationType", "NONE") == "NONE"]


def check_page(stack: Stack, page: Page, key: str) -> None:
    """Checks that the page's files match those of `serve`, and that the API gets all other requests."""
    s3 = stack.client("s3")
    for wanted in objects(DIST, page.sign_in):
        found = s3.get_object(Bucket=page.bucket, Key=wanted["Key"])
        check(found["Body"].read() == wanted["Body"], f"{wanted['Key']} has other bytes")
        for name in ("ContentType", "CacheControl", "ContentEncoding"):
            check(found.get(name) == wanted.get(name), f"{wanted['Key']} has {name} {found.get(name)}")
    block = s3.get_public_access_block(Bucket=page.bucket)["PublicAccessBlockConfiguration"]
    check(all(block.values()), "the bucket of the page is not private")
    answer = stack.client("cloudfront").get_distribution_config(Id=page.distribution)
    config = answer["DistributionConfig"]
    check(bool(config.get("WebACLId")), "the page has no web ACL")
    check(config["DefaultRootObject"] == "index.html", "the page is not what its name answers with")
    paths = {one["PathPattern"] for one in config["CacheBehaviors"]["Items"]}
    missing = {"/projects*", "/admin/*", "/config.json"} - paths
    check(not missing, f"CloudFront does not hand on {missing}")
    [api] = [one for one in config["Origins"]["Items"] if one["Id"] == "api"]
    added = [(one["HeaderName"], one["HeaderValue"]) for one in api["CustomHeaders"]["Items"]]
    check(added == [("x-page-key", key)], f"CloudFront adds {[name for name, _ in added]} to requests")
    check_routes_want_tokens(stack)


def check_routes_want_tokens(stack: Stack) -> None:
    [api_id] = stack.of_type("AWS::ApiGatewayV2::Api").values()
    routes = stack.client("apigatewayv2").get_routes(ApiId=api_id)["Items"]
    others = [one["RouteKey"] for one in routes if one.get("AuthorizationType") != "JWT"]
    check(not others, f"these routes want no token: {others}")
