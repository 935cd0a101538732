"""The region of AWS that the caller has selected."""

import os
from collections.abc import Mapping


def selected(environment: Mapping[str, str] = os.environ) -> str | None:
    """Returns the region of the environment, or None if only a profile may name one.

    The AWS CLI and most SDKs read AWS_REGION. boto3 reads only AWS_DEFAULT_REGION, and would prefer the
    region of the profile to AWS_REGION.
    """
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or None
