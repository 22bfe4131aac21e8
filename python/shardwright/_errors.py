"""What functions raise."""

from __future__ import annotations

from typing import Any, NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong with an input."""

    # A keyword as in "gpus=", a line or a JSON pointer; empty for the input as a whole.
    where: str
    found: str
    expected: str


class InputError(ValueError):
    """Bad input: ``problems`` has all that is wrong with it, ``source`` the file or command."""

    def __init__(self, message: str, source: str, problems: list[Problem]) -> None:
        super().__init__(message)
        self.source = source
        self.problems = problems

    def __reduce__(self) -> tuple[Any, ...]:
        # Pools of processes pickle what a call raises, and build it anew from its arguments.
        return type(self), (str(self), self.source, self.problems)


class Failure(RuntimeError):
    """A command that failed although its input was good."""
