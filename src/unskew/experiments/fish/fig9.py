"""Fig. 9 (RQ1): execution time and memory on real streams. MT and AM cannot be had; others stand in."""

from unskew.experiments.claims import verdict
from unskew.experiments.fish.pictures import Row, by_workers
from unskew.experiments.fish.rules import at_most, gains, largest, up_to
from unskew.experiments.fish.setup import ALL, MOST, REAL, Cell, cells_of, jobs_of, real_streams, sizes
from unskew.experiments.grid import Job, Outcomes
from unskew.experiments.paper import Experiment, Finding, Part, Picture, Settings, Table, not_testable
from unskew.experiments.real import absent
from unskew.experiments.words import listed, percent

OTHER_DATA = "On congress_hashtags, stocknet_cashtags and reddit_domains where present, not on MT and AM."
TEXTS = {
    "fig9-sg": ("FISH's execution time is almost that of SG on real data", "at most 1.07x"),
    "fig9-pkg": (
        "the gain of FISH over PKG grows with the number of workers",
        "from 1.19x to 8.32x (MT), from 1.12x to 7.31x (AM)",
    ),
    "fig9-dc": ("FISH is faster than D-C on real data", "up to 7.44x"),
    "fig9-wc": ("FISH is faster than W-C on real data", "up to 6.95x"),
    "fig9-dc-fair": ("the same against D-C with a sketch sized by its theta (ours, not the paper's)", "up to 7.44x"),
    "fig9-wc-fair": ("the same against W-C with a sketch sized by its theta (ours, not the paper's)", "up to 6.95x"),
    "fig11-real": (f"FISH's memory is comparable to FG's with {MOST} workers, on real data", "at most 2.61x"),
}


def jobs(settings: Settings) -> list[Job]:
    return jobs_of("fig9", real_streams(settings), sizes(settings), ALL)


def claims(outcomes: Outcomes, settings: Settings) -> list[Finding]:
    cells = cells_of(outcomes, ALL)
    if not cells:
        why = f"MT and AM cannot be had, and {absent(', '.join(REAL))}"
        return [not_testable(id, *text, why) for id, text in TEXTS.items()]
    rising = {name: _gains_over_pkg(cells, name) for name in dict.fromkeys(cell.data for cell in cells)}
    times = [(cell.time("FISH"), cell.place) for cell in cells]
    memory = [(cell.memory("FISH"), cell.place) for cell in cells if cell.workers == MOST]
    return [
        at_most("fig9-sg", TEXTS["fig9-sg"][0], 1.07, times, OTHER_DATA),
        Finding(
            "fig9-pkg",
            *TEXTS["fig9-pkg"],
            listed((name, f"W={w}: {gain:.2f}") for name, values in rising.items() for w, gain in values),
            verdict(all(_grows([gain for _, gain in values]) for values in rising.values())),
            "Rule: on every stream the gain is larger at the largest W than at the smallest, and nowhere smaller than "
            f"at the W before. How large it gets is about p1 W / 2 of the stream. {OTHER_DATA}",
        ),
        up_to("fig9-dc", TEXTS["fig9-dc"][0], 7.44, gains(cells, "D-C", "FISH"), _why(cells, "D-C")),
        up_to("fig9-wc", TEXTS["fig9-wc"][0], 6.95, gains(cells, "W-C", "FISH"), _why(cells, "W-C")),
        up_to("fig9-dc-fair", TEXTS["fig9-dc-fair"][0], 7.44, gains(cells, "D-C sized", "FISH"), _sized("D-C")),
        up_to("fig9-wc-fair", TEXTS["fig9-wc-fair"][0], 6.95, gains(cells, "W-C sized", "FISH"), _sized("W-C")),
        at_most("fig11-real", TEXTS["fig11-real"][0], 2.61, memory, f"{_epochs(cells)} {OTHER_DATA}"),
    ]


def _why(cells: list[Cell], name: str) -> str:
    slower = [(cell.latency(name) / cell.latency("FISH"), cell.place) for cell in cells]
    return (
        f"Execution time tells only who ends last. {name} evens out all that was ever sent, so it spares a worker that "
        "got too much while a new hot key went unnoticed, and little of the delay is left at the end. What differs is "
        f"latency: the 99th percentile is up to {largest(slower)} times FISH's. {OTHER_DATA}"
    )


def _sized(name: str) -> str:
    return f"{name} has 20 counters per worker here, 320 to 2560, instead of 1000. See fig9-dc. {OTHER_DATA}"


def _epochs(cells: list[Cell]) -> str:
    longer = [(cell.memory("FISH, long epoch"), cell.place) for cell in cells if cell.workers == MOST]
    return (
        "With 128 workers one tuple after a decay makes its key hot (see fig11-fish), and streams of few keys or few "
        f"tuples per key show it. With epochs of 16 W tuples it is at most {largest(longer)}."
    )


def _gains_over_pkg(cells: list[Cell], name: str) -> list[tuple[int, float]]:
    return sorted((cell.workers, cell.gain("PKG", "FISH")) for cell in cells if cell.data == name)


def _grows(values: list[float]) -> bool:
    steps = zip(values, values[1:], strict=False)
    return values[-1] > values[0] and all(later >= earlier for earlier, later in steps)


def parts(outcomes: Outcomes, settings: Settings) -> list[Part]:
    cells = cells_of(outcomes, ALL)
    if not cells:
        return ["No real stream was found; name their folder with --data."]
    rows = [
        Row("execution time, over SG", Cell.time, log=True),
        Row("99th percentile of latency", Cell.latency, log=True),
        Row("memory, over FG", Cell.memory, log=True),
    ]
    body = [
        [cell.place if name == "SG" else "", name, *times_and_memory(cell, name)]
        for cell in cells
        if cell.workers == MOST
        for name in ALL
    ]
    first = {cell.data: cell.of["SG"] for cell in cells}
    told = "; ".join(f"{n}: {r.tuples:,} tuples, {r.keys:,} keys, p1 {percent(r.p1)}" for n, r in first.items())
    return [
        Picture(
            "fig9",
            by_workers(cells, [name for name in ALL if name != "SG"], rows),
            "Execution time (SG is 1), latency (in service times of a tuple) and memory (FG is 1) on real streams that "
            f"drift: {told}. D-C and W-C have 1000 counters as in the paper, “sized” ones 20 per worker.",
        ),
        Table(
            f"The same at W = {MOST}, with the latency in service times of a tuple. SG waits for nobody: 1.",
            ["stream", "scheme", "time over SG", "memory over FG", "mean latency", "99th percentile", "longest queue"],
            body,
        ),
    ]


def times_and_memory(cell: Cell, name: str) -> list[str]:
    """Execution time over SG's, memory over FG's, and `latencies`."""
    return [f"{cell.time(name):.3f}", f"{cell.memory(name):.2f}", *latencies(cell, name)]


def latencies(cell: Cell, name: str) -> list[str]:
    """Mean and 99th percentile of the latency in service times, and the longest queue."""
    times = (cell.latency(name, which) for which in ("latency_mean", "latency_p99"))
    return [*(f"{time:,.1f}" for time in times), f"{cell.of[name].longest_queue:,}"]


EXPERIMENT = Experiment("fig9", "Figure 9: real streams", jobs, claims, parts)
