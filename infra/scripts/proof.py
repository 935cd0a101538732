"""The two levels of the proofs (docs/trust.md)."""

import os


def is_deep() -> bool:
    """Returns whether this is a run of `make prove`, which also does what takes too long for every change."""
    return os.environ.get("PROOF") == "deep"
