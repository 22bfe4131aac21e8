"""What functions raise."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong with an input."""

    # An option, a line or a JSON pointer; empty for the input as a whole.
    where: str
    found: str
    expected: str


class InputError(ValueError):
    """Bad input: ``problems`` has all that is wrong with it, ``source`` the file or command."""

    def __init__(self, message: str, source: str, problems: list[Problem]) -> None:
        super().__init__(message)
        self.source = source
        self.problems = problems


class Failure(RuntimeError):
    """A command that failed although its input was good."""
