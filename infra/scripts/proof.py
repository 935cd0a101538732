"""The two levels of the proofs (docs/trust.md)."""

import os


def is_deep() -> bool:
    """Returns whether this is `make prove`, with checks that take too long for every change."""
    return os.environ.get("PROOF") == "deep"
