"""Applies properties that the substitute ignores, and reports them.

The report contains the docstring of each function; the function returns the affected resources.
"""

from collections.abc import Callable

from scripts.deployment.stack import Stack
from scripts.errors import check


def time_to_live(stack: Stack) -> list[str]:
    """A TimeToLiveSpecification in a template is not applied."""
    dynamodb, filled = stack.client("dynamodb"), []
    for table in stack.of_type("AWS::DynamoDB::Table").values():
        state = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if state.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            wanted = {"AttributeName": "expires_at", "Enabled": True}
            dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)
            filled.append(table)
    return filled


def lifecycle(stack: Stack) -> list[str]:
    """The LifecycleConfiguration of a bucket is not applied."""
    s3, filled = stack.client("s3"), []
    for bucket in stack.of_type("AWS::S3::Bucket").values():
        try:
            s3.get_bucket_lifecycle_configuration(Bucket=bucket)
        except s3.exceptions.ClientError as error:
            check(error.response["Error"]["Code"] == "NoSuchLifecycleConfiguration", f"{bucket}: {error}")
            abort = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}
            clean_up = {"ID": "clean-up", "Status": "Enabled", "Filter": {}, **abort}
            ends = {"Filter": {"Prefix": "exports/"}, "Expiration": {"Days": 1}}
            rules = [clean_up, {"ID": "exports", "Status": "Enabled", **ends}]
            s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": rules})
            filled.append(bucket)
    return filled


def reserved_concurrency(stack: Stack) -> list[str]:
    """The ReservedConcurrentExecutions of a function are not applied."""
    reserved = int(stack.parameters.get("ApiConcurrency", 0))
    lambda_, function = stack.client("lambda"), stack.resources["StartUpload"].physical
    found = lambda_.get_function_concurrency(FunctionName=function)
    if reserved == found.get("ReservedConcurrentExecutions", 0):
        return []
    lambda_.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=reserved)
    return [function]


def maximum_concurrency(stack: Stack) -> list[str]:
    """A MaximumConcurrency that is a parameter stays text, and its queue is not polled."""
    lambda_, filled = stack.client("lambda"), []
    own = stack.of_type("AWS::Lambda::EventSourceMapping").values()
    for mapping in lambda_.list_event_source_mappings()["EventSourceMappings"]:
        if mapping["UUID"] not in own:
            continue
        limit = int(mapping["ScalingConfig"]["MaximumConcurrency"])
        lambda_.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": limit})
        filled.append(mapping["EventSourceArn"].rsplit(":", 1)[-1])
    return filled


GAPS: tuple[Callable[[Stack], list[str]], ...] = (
    time_to_live,
    lifecycle,
    reserved_concurrency,
    maximum_concurrency,
)
