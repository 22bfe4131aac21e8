"""Results: the JSON documents of the commands, whose members are attributes too."""

from __future__ import annotations

import difflib
import html
import json
import tempfile
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from . import _plots


class Record(dict):
    """A JSON object whose members can be read as attributes: ``record.mfu`` is ``record["mfu"]``.

    ``record.step`` finds ``step_s`` too, and any other quantity by its name without the unit.
    """

    _UNITS = ("_s", "_bytes", "_usd", "_kwh", "_ratio")

    def __getattr__(self, name: str) -> Any:
        return self[self._key(name)]

    def __setattr__(self, name: str, value: Any) -> None:
        """Changes a member. ``record["name"] = value`` adds one."""
        self[self._key(name)] = value

    def _key(self, name: str) -> str:
        for suffix in ("", *self._UNITS):
            if name + suffix in self:
                return name + suffix
        members = {str(key) for key in self}
        members |= {key.removesuffix(unit) for key in members for unit in self._UNITS}
        near = difflib.get_close_matches(name, sorted(members), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise AttributeError(f"{type(self).__name__} has no {name!r}; {hint}it has {', '.join(map(str, self))}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *map(str, self)]

    def rows(self) -> list[Mapping[str, Any]]:
        """What a table of this result lists: plans, points, measured rows, or the record itself."""
        return [self]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a line for each of ``rows()`` and a column for each value, as in ``memory.peak_bytes``."""
        try:
            import pandas
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("to_pandas() needs pandas: pip install shardwright[tables], or pandas") from error
        return pandas.DataFrame([dict(_flat(row)) for row in self.rows()])

    def _summary(self) -> list[tuple[str, str]]:
        return [(str(key), _cell(value)) for key, value in self.items() if not isinstance(value, (dict, list))]

    def _repr_html_(self) -> str:
        return _html_table(["", ""], [list(each) for each in self._summary()])


class Profile(Record):
    """A model, cluster or stack. Its members can be changed before it is passed to a function."""


class Step(Record):
    """A plan and what its step takes. ``docs/formats/results.md`` lists all members."""

    plan: Record
    layout: str
    step: float
    step_s: float
    step_interval_s: list[float] | None
    tokens_per_s_per_gpu: float
    tflops_per_gpu: float
    mfu: float
    hfu: float
    fits: bool
    memory: Record
    time: Record
    stages: list[Record]

    def __init__(self, *arguments: Any, **members: Any) -> None:
        super().__init__(*arguments, **members)
        self.__dict__["_parts"] = {}

    def scenario(self) -> dict[str, Any]:
        """The plan file: model, cluster, stack and plan. Functions take it, or this result, as ``plan=``."""
        return {"schema": "shardwright/plan", "version": 1, **self.__dict__["_parts"], "plan": dict(self["plan"])}

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the plan file, which ``shardwright run`` and ``shardwright export`` take."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.scenario(), file, indent=1)

    def plot_breakdown(self, axes: Any = None) -> Any:
        """Draws where the time of the step goes. Returns the matplotlib axes."""
        return _plots.breakdown(self, axes)

    def timeline(self) -> Record:
        """The operations of the step on each stream of each pipeline stage."""
        from . import simulate

        with tempfile.TemporaryDirectory(prefix="shardwright-") as folder:
            path = Path(folder) / "timeline.json"
            simulate(plan=self, timeline=path)
            return json.loads(path.read_text(encoding="utf-8"), object_hook=Record)

    def plot_timeline(self, axes: Any = None) -> Any:
        """Draws the timeline of the step. Returns the matplotlib axes."""
        return _plots.timeline(self.timeline(), axes)

    def __repr__(self) -> str:
        return _text_table(["", ""], [list(each) for each in self._summary()])

    def _summary(self) -> list[tuple[str, str]]:
        low, high = self.get("step_interval_s") or (None, None)
        return [
            ("plan", self["layout"]),
            ("step", f"{self['step_s']:.4g} s" + (f" (80 %: {low:.4g} to {high:.4g} s)" if low else "")),
            ("MFU", f"{100 * self['mfu']:.1f} %"),
            ("tokens/s per GPU", f"{self['tokens_per_s_per_gpu']:,.0f}"),
            ("memory", f"{self['memory']['peak_bytes'] / 1e9:.1f} GB" + ("" if self["fits"] else " (does not fit)")),
        ]


_SHOWN = 5
_MOST_LINES = 20


class Plans(Record):
    """The answer of a search: ``plans`` from the best one on, empty with ``infeasible`` if none fits."""

    plans: list[Step]
    front: list[Step]
    infeasible: Record
    search: Record

    def rows(self) -> list[Mapping[str, Any]]:
        return self["plans"]

    def plot_front(self, axes: Any = None) -> Any:
        """Draws the plans that are best for some weight of time and memory. Returns the matplotlib axes."""
        return _plots.front(self["front"], axes)

    def __repr__(self) -> str:
        return _text_table(*_steps_table(self["plans"])) + _further(self["plans"])

    def _repr_html_(self) -> str:
        return _html_table(*_steps_table(self["plans"])) + f"<p>{_further(self['plans']).strip()}</p>"


class Points(Record):
    """A result with a point for each size or value."""

    points: list[Record]

    def rows(self) -> list[Mapping[str, Any]]:
        return self["points"]

    def __repr__(self) -> str:
        return _text_table(*self._table())

    def _repr_html_(self) -> str:
        return _html_table(*self._table())

    def _table(self) -> tuple[list[str], list[list[str]]]:
        return _records_table(self["points"])

    def plot(self, axes: Any = None) -> Any:
        """Draws throughput over the quantity that varies. Returns the matplotlib axes."""
        return _plots.points(self, axes)


class Listing(Record):
    """A result that is mostly one list."""

    def rows(self) -> list[Mapping[str, Any]]:
        return self[_LISTS[_schema(self)]]

    def __repr__(self) -> str:
        return _text_table(*self._table()) + self._further()

    def _repr_html_(self) -> str:
        return _html_table(*self._table()) + f"<p>{self._further().strip()}</p>"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = self.rows()[:_MOST_LINES]
        return _found_table(rows) if rows and "best" in rows[0] and "why_not" in rows[0] else _records_table(rows)

    def _further(self) -> str:
        left = len(self.rows()) - _MOST_LINES
        return f"\nand {left} further rows in .rows()" if left > 0 else ""


# The list of a listing, by its schema.
_LISTS = {
    "models": "models",
    "clusters": "clusters",
    "stacks": "stacks",
    "stack_plans": "stacks",
    "run-search": "choices",
    "study": "rows",
    "validation": "rows",
    "kernel-validation": "rows",
    "collective-validation": "rows",
    "run-validation": "rows",
}


# What an answer repeats of its question, and what every document has.
_STATED = ("schema", "version", "tool_version", "inputs", "plan", "run", "model", "cluster", "stack")


class Answer(Record):
    """A result that is neither a plan nor a list: its values say what it is."""

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with one line and a column for each value, as in ``days.p50``."""
        return super().to_pandas()

    def _summary(self) -> list[tuple[str, str]]:
        plans = [line for value in self.values() if isinstance(value, Step) for line in value._summary()]
        said = {key: value for key, value in self.items() if key not in _STATED and not isinstance(value, Step)}
        values = [(key, _cell(value)) for key, value in _flat(said) if not isinstance(value, list)]
        values += [(key, f"a list of {len(value)}") for key, value in said.items() if isinstance(value, list) and value]
        left = [("", f"and {len(values) - _MOST_LINES} further values")] if len(values) > _MOST_LINES else []
        return plans + values[:_MOST_LINES] + left

    def __repr__(self) -> str:
        return _text_table(["", ""], [list(each) for each in self._summary()])


class TraceReport(Listing):
    """What traces, logs and snapshots say."""

    files: list[Record]
    logs: list[Record]
    memory: list[Record]
    warnings: list[str]

    def rows(self) -> list[Mapping[str, Any]]:
        """The traces; without any, collectives and steps of logs, or else plans of launches, memory of devices, or jobs."""
        if self._traces():
            return self["files"]
        collectives: list[Mapping[str, Any]] = [{"path": file["path"], **each} for file in self["files"] for each in file["collectives"]]
        steps: list[Mapping[str, Any]] = [{"path": log["path"], **step} for log in self["logs"] for step in log["steps"]]
        devices: list[Mapping[str, Any]] = [{"path": snapshot["path"], **device} for snapshot in self["memory"] for device in snapshot["devices"]]
        return collectives + steps or self["plans"] or devices or self["jobs"]

    def plot(self, axes: Any = None) -> Any:
        """Draws the time of each trace by category, or else of each step of logs. Returns the matplotlib axes."""
        if self._traces():
            return _plots.trace_times(self._traces(), axes)
        if any(step["time_s"] is not None for log in self["logs"] for step in log["steps"]):
            return _plots.logged_steps(self["logs"], axes)
        raise ValueError("the report has no traces and no times of logged steps to draw; rows() lists what it has")

    def _traces(self) -> list[Any]:
        # Files of nccl-tests and of NCCL's Inspector have collectives alone.
        return [file for file in self["files"] if file["kernels"] is not None]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        if not self._traces():
            return super()._table()
        header = ["trace", "rank", "kernels", "step (ms)", "busy (ms)", "exposed collectives (ms)"]
        rows = [
            [Path(file["path"]).name, _cell(file["rank"]), f"{file['kernels']:,}", *(_milliseconds(file[key]) for key in _TRACE_TIMES)]
            for file in self._traces()
        ]
        return header, rows

    def _further(self) -> str:
        if not self._traces():
            return super()._further()
        others = [f"{len(self[kind])} in .{kind}" for kind in ("logs", "plans", "memory", "jobs") if self[kind]]
        return f"\nand {', '.join(others)}" if others else ""


_TRACE_TIMES = ("step_s", "busy_s", "exposed_collective_s")


class Export(str):
    """The configuration of a framework as text; ``notes`` says what it cannot express."""

    notes: str = ""


_PARTS = ("model", "cluster", "stack")


def parsed(text: str, parts: Mapping[str, Any] | None = None) -> Record:
    """Reads a document of the command and gives each object its type."""
    document = json.loads(text, object_hook=Record)
    schema = _schema(document)
    parts = {key: document[key] for key in _PARTS if key in document} if parts is None else parts
    typed = _typed(document, dict(parts))
    kind = {"plans": Plans, "scale": Points, "sweep": Points, "trace-report": TraceReport, "model": Profile, "cluster": Profile, "stack": Profile}
    if schema in kind:
        return kind[schema](typed)
    if isinstance(typed, Step):
        return typed
    return (Listing if schema in _LISTS else Answer)(typed)


def _schema(document: Mapping[str, Any]) -> str:
    return str(document.get("schema", "")).removeprefix("shardwright/")


def _typed(value: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_typed(each, parts) for each in value]
    if not isinstance(value, dict):
        return value
    if "best" in value and isinstance(value.get("stack"), str):
        parts = {**parts, "stack": value["stack"]}
    members = {key: each if key in _PARTS else _typed(each, parts) for key, each in value.items()}
    if not ("plan" in value and "step_s" in value and "stages" in value):
        return Record(members)
    step = Step(members)
    step.__dict__["_parts"] = parts
    return step


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a row but for lists of objects, which are tables of their own."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif not (isinstance(value, list) and any(isinstance(each, dict) for each in value)):
            yield prefix + key, value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _records_table(records: list[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The values of records, without those that are lists or records themselves."""
    shown = [{key: value for key, value in record.items() if not isinstance(value, (dict, list))} for record in records]
    header = list(dict.fromkeys(key for record in shown for key in record))
    return header, [[_cell(record.get(key, "")) for key in header] for record in shown]


def _found_table(rows: list[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Searches: what each asked for, and its best plan or why there is none."""
    asked = [{"values": row.get("values", {}), **{key: value for key, value in row.items() if key not in ("values", "best", "why_not")}} for row in rows]
    header, cells = _records_table([{**each.pop("values"), **each} for each in asked])
    for line, row in zip(cells, rows):
        best = row["best"]
        if best is None:
            line += ["", "", "", row["why_not"]]
            continue
        memory = best["memory"]["peak_bytes"] if "memory" in best else best["peak_bytes"]
        line += [f"{best['step_s']:.4g}", f"{100 * best['mfu']:.1f}", f"{memory / 1e9:.1f}", best["layout"]]
    return [*header, "step (s)", "MFU (%)", "memory (GB)", "plan"], cells


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.2f}"


def _html_table(header: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head = f"<thead>{line(header, 'th')}</thead>" if any(header) else ""
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def _text_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, *rows] if any(header) else rows
    if not lines:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def _steps_table(steps: list[Step]) -> tuple[list[str], list[list[str]]]:
    """The best few."""
    if not steps:
        return ["No plan fits."], []
    summaries = [step._summary() for step in steps[:_SHOWN]]
    return [name for name, _ in summaries[0]], [[value for _, value in summary] for summary in summaries]


def _further(steps: list[Step]) -> str:
    return f"\nand {len(steps) - _SHOWN} further plans in .plans" if len(steps) > _SHOWN else ""
