"""Pictures of simulated runs. matplotlib is optional: ``pip install 'unskew[plots]'``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unskew.errors import InputError
from unskew.simulate import Result
from unskew.writing import whole_file

PICTURES = (".png", ".svg", ".pdf")
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")  # safe for colour-blind eyes


def new_figure(width: float = 7.0, height: float = 4.0) -> Any:
    """An empty matplotlib Figure that belongs to no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("plots: matplotlib is not installed; type: pip install 'unskew[plots]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def runs_figure(results: Sequence[Result], labels: Sequence[str]) -> Any:
    """Imbalance through time, and the load of each worker from the most to the least loaded.

    Where workers have queues, below them: tuples that wait, and the 99th percentile of latency, through time.
    """
    queued = all(result.queue_samples is not None for result in results)
    figure = new_figure(11, 8.5 if queued else 4.5)
    panels = figure.subplots(1 + queued, 2, squeeze=False)
    through_time, loads = panels[0]
    for i, (result, label) in enumerate(zip(results, labels, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        fraction = [max(sample.imbalance / sample.tuples, 1e-9) for sample in result.samples]
        through_time.plot([sample.tuples for sample in result.samples], fraction, label=label, color=colour)
        mean = max(1, result.tuples) / len(result.load)
        loads.plot([load / mean for load in sorted(result.load, reverse=True)], label=label, color=colour, marker=".")
    through_time.set(xlabel="tuples t", ylabel="imbalance I(t) / t", yscale="log", title="Imbalance through time")
    loads.set(xlabel="worker, most loaded first", ylabel="load / mean load", title="Load at the end")
    loads.axhline(1.0, color="grey", linewidth=0.8)
    if queued:
        _draw_queues(panels[1], results)
    figure.legend(*loads.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw_queues(panels: Any, results: Sequence[Result]) -> None:
    waiting, latency = panels
    for i, result in enumerate(results):
        samples, colour = result.queue_samples or [], COLOURS[i % len(COLOURS)]
        waiting.plot([s.tuples for s in samples], [s.waiting for s in samples], color=colour)
        told = [s for s in samples if s.latency_p99 is not None]
        latency.plot([s.tuples for s in told], [s.latency_p99 for s in told], color=colour)
    waiting.set(xlabel="tuples t", ylabel="tuples at the workers", title="Queues through time", ylim=(0, None))
    latency.set(xlabel="tuples t", ylabel="seconds", yscale="log", title="99th percentile of latency through time")


def save_runs(results: Sequence[Result], path: Path, labels: Sequence[str]) -> None:
    """Write `runs_figure` to a .png, .svg or .pdf file."""
    figure = runs_figure(results, labels)
    with whole_file(path) as unfinished:
        figure.savefig(unfinished)


def check_picture(path: Path) -> None:
    if path.suffix not in PICTURES:
        raise InputError(f"plot: {str(path)!r} must end in one of {', '.join(PICTURES)}")


def loads_figure(rows: Sequence[int], planned: Sequence[float] = (), seconds: Sequence[float] = ()) -> Any:
    """Rows per worker, most loaded first, with what was planned; below them the seconds that each worker took."""
    figure = new_figure(8, 6.5 if seconds else 4)
    panels = figure.subplots(1 + bool(seconds), 1, squeeze=False)[:, 0]
    order = sorted(range(len(rows)), key=lambda worker: -rows[worker])
    places = range(len(rows))
    panels[0].bar(places, [rows[worker] for worker in order], color=COLOURS[0], label="achieved")
    if planned:
        shown = [planned[worker] for worker in order]
        panels[0].plot(places, shown, color=COLOURS[1], marker=".", linestyle="", label="planned")
    panels[0].axhline(sum(rows) / max(1, len(rows)), color="grey", linewidth=0.8, label="mean")
    panels[0].set(xlabel="worker, most loaded first", ylabel="rows", title="Rows per worker")
    panels[0].legend()
    if seconds:
        panels[1].bar(places, [seconds[worker] for worker in order], color=COLOURS[2])
        panels[1].set(xlabel="worker, in the same order", ylabel="seconds", title="Seconds per worker")
    return figure
