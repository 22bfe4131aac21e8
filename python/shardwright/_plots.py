"""Charts of results. matplotlib is imported where it is used, because the package works without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def _new_axes(axes: Any, width: float = 8.0, height: float = 3.0) -> Any:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def breakdown(step: Any, axes: Any) -> Any:
    """One bar from the parts of the step's time on the compute stream of its slowest stage."""
    time = step["time"]
    parts = {
        "GEMM": time["gemm_s"],
        "attention": time["attention_s"],
        "memory-bound": time["memory_bound_s"],
        "optimizer": time["optimizer_s"],
        "interference": time["interference_s"],
        **{f"exposed {name}": value for name, value in time["exposed"].items()},
        "offload": time["offload_s"],
        "pipeline bubble": time["bubble_s"],
        "host": time["host_s"],
        "stall": time["stall_s"],
    }
    axes = _new_axes(axes, height=3.5)
    shown = [(name, value) for name, value in parts.items() if value > 0.001 * step["step_s"]][::-1]
    bars = axes.barh([name for name, _ in shown], [value for _, value in shown], color="tab:blue")
    axes.bar_label(bars, [f"{value:.3g} s, {100 * value / step['step_s']:.0f} %" for _, value in shown], padding=4)
    axes.margins(x=0.2)
    axes.set_xlabel("time (s)")
    axes.set_title(f"Step of {step['step_s']:.3g} s")
    return axes


def front(plans: list[Any], axes: Any) -> Any:
    """Step time over peak memory."""
    axes = _new_axes(axes, height=4.0)
    axes.plot([plan["memory"]["peak_bytes"] / 1e9 for plan in plans], [plan["step_s"] for plan in plans], "o")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:.3g}")
    axes.yaxis.set_minor_formatter("{x:.3g}")
    axes.set_xlabel("peak memory per GPU (GB)")
    axes.set_ylabel("step (s)")
    axes.set_title("Plans that no other plan beats in time and in memory")
    return axes


def points(result: Any, axes: Any) -> Any:
    """Throughput over the quantity that varies, in double-logarithmic axes."""
    name = result.get("quantity", "GPUs")
    shown = [(point.get("value", point.get("gpus")), point["tokens_per_s"]) for point in result["points"] if point["best"]]
    values, rates = [value for value, _ in shown], [rate for _, rate in shown]
    axes = _new_axes(axes, height=4.0)
    from matplotlib.ticker import MaxNLocator

    unit = result.get("unit")
    if unit == "bytes_per_s":
        values, unit = [value / 1e9 for value in values], "GB/s"
    axes.loglog(values, rates, "o-")
    axes.set_xlabel(f"{name} ({unit})" if unit else name)
    axes.set_ylabel("tokens/s")
    # Rates within a decade may have no power of ten between them.
    if rates and max(rates) < 10 * min(rates):
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.set_major_formatter("{x:,.6g}")
    if len(values) > 1 and name in ("GPUs", "gpus"):
        axes.loglog(values, [rates[0] * value / values[0] for value in values], "--", color="gray", label="linear")
        axes.legend()
    axes.set_xticks(values)
    axes.xaxis.set_major_formatter("{x:,.6g}")
    axes.minorticks_off()
    return axes


def trace_times(files: list[Any], axes: Any) -> Any:
    """A bar for each trace from its kernels' times by category, which add up to all durations."""
    axes = _new_axes(axes, height=1.5 + 0.4 * len(files))
    names = [Path(file["path"]).name for file in files]
    left = [0.0] * len(files)
    for category in ("gemm", "attention", "elementwise", "collective", "memory_copy", "other"):
        times = [1e3 * file["time"][category + "_s"] for file in files]
        if any(times):
            axes.barh(names, times, left=left, label=category.replace("_", " "))
            left = [end + time for end, time in zip(left, times)]
    axes.invert_yaxis()
    axes.set_xlabel("sum of durations (ms)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.35), ncols=6, frameon=False)
    return axes


def logged_steps(logs: list[Any], axes: Any) -> Any:
    """A line for each log: the times of its steps."""
    axes = _new_axes(axes)
    for log in logs:
        steps = [step for step in log["steps"] if step["time_s"] is not None]
        axes.plot([step["number"] for step in steps], [step["time_s"] for step in steps], label=Path(log["path"]).name)
    axes.set_xlabel("step")
    axes.set_ylabel("time (s)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return axes


_BESIDE = "communication and copies"
_PHASES = {"forward": "forward", "recompute": "recomputation", "backward_input": "backward", "backward_weight": "backward", "optimizer": "optimizer"}
_COLOURS = {"forward": "tab:blue", "recomputation": "tab:cyan", "backward": "tab:green", "optimizer": "tab:purple", "other compute": "tab:gray", _BESIDE: "tab:orange"}


def timeline(document: Any, axes: Any) -> Any:
    """A row for each rank: the compute stream above, by phase, and what runs beside it on all other streams below."""
    rows: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for span in document["spans"]:
        what = _PHASES.get(span.get("phase", ""), "other compute") if span["stream"] == "compute" else _BESIDE
        rows.setdefault((span["rank"], what), []).append((span["start_s"], span["duration_s"]))
    labels = {rank["rank"]: rank["label"] for rank in document["ranks"]}
    ranks = sorted({rank for rank, _ in rows})
    axes = _new_axes(axes, width=12.0, height=1.5 + 0.4 * len(ranks))
    from matplotlib.patches import Patch

    colours = []
    for what, colour in _COLOURS.items():
        for place, rank in enumerate(ranks):
            if spans := rows.get((rank, what)):
                # Edges would widen each span by a point, and thousands of short ones would look like one.
                axes.broken_barh(spans, (place if what == _BESIDE else place - 0.4, 0.4), color=colour, linewidth=0)
        if any(shown == what for _, shown in rows):
            colours.append(Patch(color=colour, label=what))
    axes.set_yticks(range(len(ranks)), [labels[rank] for rank in ranks])
    axes.invert_yaxis()
    axes.set_xlabel("time (s)")
    axes.legend(handles=colours, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(colours), frameon=False)
    return axes
