"""Turns keyword arguments into the words of a command line, which reads and checks them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from . import _core

# What a caller in Python does with the result instead.
_OF_THE_TERMINAL = {"help", "json", "markdown", "color", "no-progress"}
# Commands that become another program or run for hours, and what __version__ says.
_LEFT_OUT = {"run", "gui", "probe", "tune", "version"}


def described_commands() -> dict[str, dict[str, Any]]:
    """The options of each command that has a function, by the words that name the command."""
    described = json.loads(_core.description())["commands"]
    return {
        each["words"]: {
            "about": each["about"],
            "options": [option for option in each["options"] if option["name"] not in _OF_THE_TERMINAL],
            "prints_json": any(option["name"] == "json" for option in each["options"]),
        }
        for each in described
        if each["words"] not in _LEFT_OUT
    }


def parameter_name(option: Mapping[str, Any]) -> str:
    """``seq_len`` for ``--seq-len``, ``plan`` for ``PLAN``."""
    return option["name"].replace("-", "_").lower()


def in_python(text: str, options: list[dict[str, Any]]) -> str:
    """The text with ``seq_len`` in place of ``--seq-len``."""
    names = {option["name"]: parameter_name(option) for option in options if not option["positional"]}
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda found: names.get(found[1], found[0]), text)


@contextlib.contextmanager
def command_line(words: str, options: list[dict[str, Any]], values: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, str]]]:
    """The arguments of a command, while documents among the values lie in files, and the name of the value of each file."""
    by_name = {parameter_name(option): option for option in options}
    with contextlib.ExitStack() as stack:
        files = _Files(stack)
        positional: list[str] = []
        named: list[str] = []
        for name, value in values.items():
            option = by_name[name]
            if value is None or (option["flag"] and value is False):
                continue
            if option["flag"] and value is not True:
                raise TypeError(f"{name}: found {value!r}; expected True or False")
            files.name = name
            texts = [files.write(_study(value, files))] if name == "study" and isinstance(value, Mapping) else _texts(option, value, files)
            if option["positional"]:
                positional += texts
            elif option["flag"]:
                named.append("--" + option["name"])
            else:
                named += [word for text in texts for word in ("--" + option["name"], text)]
        yield [*words.split(), *named, *(["--", *positional] if positional else [])], files.names


class _Files:
    """Writes documents into a folder that is gone when the command has ended."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._folder: str | None = None
        # The value that is being written, and those of the files so far.
        self.name = ""
        self.names: dict[str, str] = {}

    def write(self, document: Mapping[str, Any]) -> str:
        if self._folder is None:
            self._folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="shardwright-"))
        name = str(document.get("name", "document"))[:64].replace("/", "-")
        path = Path(self._folder) / f"{name}-{len(self.names) + 1}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        self.names[str(path)] = self.name
        return str(path)


def _study(values: Mapping[str, Any], files: _Files) -> dict[str, Any]:
    """The scenarios of a study, whose profiles lie in files."""

    def stated(value: Any) -> Any:
        if isinstance(value, Mapping):
            return files.write(value) if "schema" in value else dict(value)
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike)):
            return [stated(each) for each in value]
        return value if value is None or isinstance(value, bool) else _text(value)

    return {name: stated(value) for name, value in values.items()}


def _texts(option: Mapping[str, Any], value: Any, files: _Files) -> list[str]:
    """The words that state a value: several for an option that may be repeated."""
    if hasattr(value, "scenario"):
        value = value.scenario()
    # The plan of an imported launch.
    if isinstance(value, Mapping) and isinstance(value.get("plan"), Mapping) and value["plan"].get("schema") == "shardwright/plan":
        value = value["plan"]
    if isinstance(value, Mapping) and not _takes_pairs(option):
        return [files.write(value)]
    if isinstance(value, Mapping):
        # A comma stands between the pairs of one word, and else between the values of a pair.
        between = "," if option["repeatable"] else "+"
        pairs = [f"{key}={_text(each, between)}" for key, each in value.items()]
        return pairs if option["repeatable"] else [",".join(pairs)]
    if isinstance(value, range) and value.step == 1 and len(value) > 0:
        return [f"{value.start}..{value.stop - 1}"]
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike)):
        if option["repeatable"]:
            return [text for each in value for text in _texts(option, each, files)]
        return [",".join(files.write(each) if isinstance(each, Mapping) else _word(option, _text(each)) for each in value)]
    return [_word(option, _text(value))]


def _word(option: Mapping[str, Any], text: str) -> str:
    """``seq-len`` for ``seq_len`` where the option takes that word."""
    hyphened = text.replace("_", "-")
    return hyphened if hyphened in re.split(r"[\s,:|]+", option["help"] + " " + option["value"]) else text


def _takes_pairs(option: Mapping[str, Any]) -> bool:
    return "=" in option["value"]


def _text(value: Any, between: str = ",") -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # Of numpy, too.
    if isinstance(value, Real) and not isinstance(value, Integral) and float(value).is_integer():
        return str(int(float(value)))
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike)):
        return between.join(_text(each) for each in value)
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)
