"""Errors that end a program with a message."""


class Failure(Exception):
    """An error that ends a program with a message of one or a few lines, without a traceback."""


def check(holds: bool, what: str) -> None:
    if not holds:
        raise Failure(what)
