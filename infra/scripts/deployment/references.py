"""Replaces names and ARNs in deployed resources by references to logical ids."""

from collections.abc import Mapping
from typing import Any

from scripts.deployment.stack import Json, Resource

# The account id of the substitute.
ACCOUNT = "000000000000"


def arns(resource: Resource, region: str) -> list[str]:
    """Returns the ARNs of a resource, for types that a template refers to by ARN."""
    name = resource.physical
    match resource.kind:
        case "AWS::SQS::Queue":
            # The physical id of a queue is its URL.
            return [arn("sqs", region, name.rsplit("/", 1)[-1])]
        case "AWS::DynamoDB::Table":
            return [arn("dynamodb", region, f"table/{name}")]
        case "AWS::Lambda::Function":
            return [arn("lambda", region, f"function:{name}")]
        case "AWS::Logs::LogGroup":
            return [arn("logs", region, f"log-group:{name}"), arn("logs", region, f"log-group:{name}:*")]
        case "AWS::IAM::Role":
            return [arn("iam", "", f"role/{name}")]
    return []


def arn(service: str, region: str, rest: str) -> str:
    return f"arn:aws:{service}:{region}:{ACCOUNT}:{rest}"


class References:
    def __init__(self, resources: Mapping[str, Resource], region: str) -> None:
        self.names: dict[str, Json] = {}
        for logical, resource in resources.items():
            self.names[resource.physical] = {"Ref": logical}
            for name in arns(resource, region):
                self.names[name] = {"Fn::GetAtt": [logical, "Arn"]}

    def restore(self, value: Any) -> Any:
        """Returns a value in which references replace names and ARNs."""
        match value:
            case list():
                return [self.restore(item) for item in value]
            case dict():
                return {key: self.restore(item) for key, item in value.items()}
            case str() if value in self.names:
                return self.names[value]
            case str() if value.startswith("arn:aws:s3:::"):
                return value.replace("arn:aws:", "arn:${AWS::Partition}:", 1)
        return value
