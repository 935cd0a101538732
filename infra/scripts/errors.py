class Failure(Exception):
    """What ends a program, told to the user in one line or a few, without a traceback."""


def check(holds: bool, what: str) -> None:
    if not holds:
        raise Failure(what)
