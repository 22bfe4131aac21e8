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
    axes.loglog(values, rates, "o-")
    axes.set_xlabel(f"{name} ({result['unit']})" if result.get("unit") else name)
    axes.set_ylabel("tokens/s")
    if len(values) > 1 and name in ("GPUs", "gpus"):
        axes.loglog(values, [rates[0] * value / values[0] for value in values], "--", color="gray", label="linear")
        axes.legend()
    axes.set_xticks(values, [f"{value:,.6g}" for value in values])
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


def timeline(document: Any, axes: Any) -> Any:
    """A row for each rank: the compute stream above, what runs beside it on all other streams below."""
    rows: dict[tuple[int, bool], list[tuple[float, float]]] = {}
    for span in document["spans"]:
        rows.setdefault((span["rank"], span["stream"] == "compute"), []).append((span["start_s"], span["duration_s"]))
    labels = {rank["rank"]: rank["label"] for rank in document["ranks"]}
    ranks = sorted({rank for rank, _ in rows})
    axes = _new_axes(axes, width=12.0, height=1.5 + 0.4 * len(ranks))
    from matplotlib.patches import Patch

    colours = []
    for computes, colour, what in ((True, "tab:blue", "compute"), (False, "tab:orange", "communication and copies")):
        for place, rank in enumerate(ranks):
            if spans := rows.get((rank, computes)):
                axes.broken_barh(spans, (place - 0.4 if computes else place, 0.4), color=colour)
        colours.append(Patch(color=colour, label=what))
    axes.set_yticks(range(len(ranks)), [labels[rank] for rank in ranks])
    axes.invert_yaxis()
    axes.set_xlabel("time (s)")
    axes.legend(handles=colours, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    return axes
