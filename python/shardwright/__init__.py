"""Plans and simulates distributed training of large language models.

>>> import shardwright as sw
>>> found = sw.plan(model="llama3-8b", cluster="dgx-h100", gpus=16, global_batch=64, seq_len=8192)
>>> found.plans[0].plan.tp
1

Each function is a command of ``shardwright``, and its keywords are the options of the command with ``_`` for ``-``:
``shardwright plan --help`` describes those of ``plan``. A model, a cluster, a stack or a plan may also be a dictionary,
as ``model()``, ``cluster()``, ``stack()`` and ``Step.scenario()`` return them.

Functions release Python's lock, stop at Ctrl-C, and call ``progress(share, text)`` if one is given. They raise
``InputError`` with all problems of bad input, and ``Failure``.
"""

from __future__ import annotations

import difflib
import inspect
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

from . import _arguments, _core
from ._errors import Failure, InputError, Problem
from ._results import Answer, Export, Listing, Plans, Points, Profile, Record, Step, TraceReport, parsed

__version__: str = _core.version()

# An installed package brings its data; a build tree reads that of the source tree.
_data = Path(__file__).with_name("share") / "shardwright"
if _data.is_dir():
    os.environ.setdefault("SHARDWRIGHT_DATA", str(_data))

# Where the executor is, which measures the cluster "here": in the package, or beside it in a build tree.
_bin = Path(__file__).with_name("bin")
_PROGRAMS = str(_bin if _bin.is_dir() else Path(__file__).absolute().parents[2] / "cli")

_COMMANDS = _arguments.described_commands()
_BAD_INPUT, _NO_PLAN, _OUTSIDE_TOLERANCE = 2, 4, 5


def _run(words: str, values: dict[str, Any], progress: Callable[[float, str], None] | None) -> tuple[str, str]:
    """Runs a command. Returns what it printed, and its messages."""
    command = _COMMANDS[words]
    with _arguments.command_line(words, command["options"], values) as (arguments, names):
        if command["prints_json"]:
            arguments.insert(len(words.split()), "--json=-")
        result = _core.run_command(arguments, progress, _PROGRAMS)

    def said(text: str) -> str:
        for file, name in names.items():
            text = text.replace(file, name)
        return _arguments.in_python(text, command["options"])

    messages = said(result["messages"].decode(errors="replace").strip())
    if result["code"] == _BAD_INPUT:
        problems = [Problem(*(said(text) for text in problem)) for problem in result["problems"]]
        raise InputError(messages, said(result["source"]), problems)
    if result["code"] not in (0, _NO_PLAN, _OUTSIDE_TOLERANCE):
        raise Failure(messages)
    if messages:
        warnings.warn(messages, stacklevel=3)
    return result["output"].decode(errors="replace"), messages


def _signature(options: list[dict[str, Any]]) -> inspect.Signature:
    parameters = []
    # A function of a plan takes it without a keyword, as in explain(found.plans[0]).
    first = any(option["positional"] for option in options)
    for option in sorted(options, key=lambda each: not (each["positional"] if first else _arguments.parameter_name(each) == "plan")):
        is_first = option["positional"] or not first and _arguments.parameter_name(option) == "plan"
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if is_first else inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(_arguments.parameter_name(option), kind, default=None))
    parameters.append(inspect.Parameter("progress", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


def _documentation(command: dict[str, Any]) -> str:
    lines = [command["about"] + ".", ""]
    for option in command["options"]:
        meaning = _arguments.in_python(option["help"], command["options"])
        lines.append(f"{_arguments.parameter_name(option)}: {meaning}")
    lines.append("progress: Called with the share of the work that is done, and a text")
    return "\n".join(lines)


def _function(name: str, words: str, returns: Any) -> Callable[..., Any]:
    command = _COMMANDS[words]
    signature = _signature(command["options"])

    def call(*arguments: Any, **keywords: Any) -> Any:
        for keyword in keywords.keys() - signature.parameters.keys():
            near = difflib.get_close_matches(keyword, signature.parameters, 1)
            raise TypeError(f"{name}() has no argument {keyword!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        most = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in signature.parameters.values())
        if len(arguments) > most:
            takes_files = any(each["positional"] for each in command["options"])
            hint = ": several files are a list" if most == 1 and takes_files else ": write model='llama3-8b'"
            raise TypeError(f"{name}() takes at most {most} argument{'' if most == 1 else 's'} without a keyword, not {len(arguments)}{hint}")
        values = signature.bind(*arguments, **keywords).arguments
        progress = values.pop("progress", None)
        text, messages = _run(words, values, progress)
        if not command["prints_json"]:
            result = returns(text)
            result.notes = messages
            return result
        return parsed(text)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = _documentation(command)
    call.__signature__ = signature.replace(return_annotation=returns)  # type: ignore[attr-defined]
    call.__module__ = __name__
    call.options = command["options"]  # type: ignore[attr-defined]
    return call


# The functions that are commands: their name here, the command, and what they return. What plan() and sweep() return
# depends on their arguments: several numbers of GPUs give points, several stacks and studies a list.
_FUNCTIONS: dict[str, tuple[str, Any]] = {
    "plan": ("plan", Union[Plans, Points, Listing]),
    "replan": ("replan", Answer),
    "scale": ("scale", Points),
    "sweep": ("sweep", Union[Points, Listing]),
    "simulate": ("simulate", Step),
    "forecast": ("forecast", Answer),
    "import_traces": ("import", TraceReport),
    "calibrate": ("calibrate", Answer),
    "explain": ("explain", Step),
    "compare": ("compare", Answer),
    "export": ("export", Export),
    "support": ("support", Answer),
    "validate": ("validate", Listing),
    "fit": ("fit", Answer),
    "network": ("network", Answer),
    "models": ("models list", Listing),
    "model": ("models show", Profile),
    "clusters": ("clusters list", Listing),
    "cluster": ("clusters show", Profile),
    "stacks": ("stacks list", Listing),
    "stack": ("stacks show", Profile),
    "schema": ("schema", Answer),
}
for _name, (_words, _returns) in _FUNCTIONS.items():
    globals()[_name] = _function(_name, _words, _returns)

__all__ = ["Answer", "Export", "Failure", "InputError", "Listing", "Plans", "Points", "Problem", "Profile", "Record", "Step", "TraceReport", *_FUNCTIONS]
