"""Writes the type stub of the package from the functions that it has: write_stub.py FOLDER_OF_THE_PACKAGE."""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path
from typing import get_args

HEADER = '''\
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, Union

from ._errors import Failure as Failure, InputError as InputError, Problem as Problem
from ._results import (
    Answer as Answer,
    Export as Export,
    Listing as Listing,
    Plans as Plans,
    Points as Points,
    Profile as Profile,
    Record as Record,
    Step as Step,
    TraceReport as TraceReport,
)

__version__: str
_Text = Union[str, int, float, PathLike[str]]
_Value = Union[_Text, Iterable[_Text], Mapping[str, Any], None]
_Progress = Union[Callable[[float, str], None], None]

'''


def stub_of(name: str, function: object) -> str:
    flags = {option["name"].replace("-", "_") for option in function.options if option["flag"]}
    positional, named = [], []
    for parameter in inspect.signature(function).parameters.values():
        kind = "_Progress" if parameter.name == "progress" else "bool" if parameter.name in flags else "_Value"
        text = f"{parameter.name}: {kind} = ..."
        (named if parameter.kind is inspect.Parameter.KEYWORD_ONLY else positional).append(text)
    words = [argument.replace(" ", "\0") + "," for argument in [*positional, "*", *named]]
    arguments = textwrap.fill(" ".join(words), 110, initial_indent="    ", subsequent_indent="    ").replace("\0", " ")
    about = inspect.getdoc(function).splitlines()[0]
    returned = inspect.signature(function).return_annotation
    returns = " | ".join(each.__name__ for each in get_args(returned) or (returned,))
    return f'def {name}(\n{arguments}\n) -> {returns}:\n    """{about}"""\n'


def main() -> None:
    package = Path(sys.argv[1])
    sys.path.insert(0, str(package.parent))
    import shardwright

    text = HEADER + "\n".join(stub_of(name, getattr(shardwright, name)) for name in shardwright._FUNCTIONS)
    (package / "__init__.pyi").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
