"""Schemes that look for hot keys, from string keys to workers, one core: rates, and what each part costs.

How cost grows with W: the sketch has 20 counters per worker but takes constant time per tuple, and so does the
least loaded of all workers; D-Choices hashes a hot key d times, and d grows with W, as does fish's walk round the ring.
"""

import statistics
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from rich.table import Table

from timing import Case, console, interleaved, show
from unskew import Router, key_ids, make
from unskew.schemes.head import counters_of
from unskew.sketches.space_saving import count_keys, new_sketch
from unskew.streams import Zipf

TUPLES, W = 2_000_000, 100
# M tuples/s of a public Java implementation, one core of a similar machine, string keys hashed on the way. There is
# none of fish: it is held against the nearest, D-Choices.
ELSEWHERE = {
    "zipf z=1.4, K = 10,000": {
        "hash": 9.2,
        "pkg": 6.1,
        "d_choices": 0.13,
        "w_choices": 0.22,
        "fish": 0.13,
        "cg": 0.076,
    },
    "zipf z=1.0, K = 1,000,000": {
        "hash": 4.2,
        "pkg": 3.2,
        "d_choices": 0.17,
        "w_choices": 0.21,
        "fish": 0.17,
        "cg": 0.9,
    },
}
TARGET = {"hash": 5, "pkg": 5, "d_choices": 10, "w_choices": 10, "fish": 10, "cg": 10}  # times the rate elsewhere


def against(title: str, seconds: dict[str, list[float]]) -> None:
    table = Table("from string keys", "M tuples/s", "elsewhere", "ratio", "target", title=title, title_justify="left")
    for name, rate in ELSEWHERE[title].items():
        ours = TUPLES / statistics.median(seconds[name]) / 1e6
        table.add_row(name, f"{ours:.2f}", f"{rate:.2f}", f"{ours / rate:.1f}", f"at least {TARGET[name]}")
    console.print(table)
    console.print("elsewhere: a public Java implementation, one core of a similar machine; for fish that of D-Choices")


def cases_for(names: Iterable[str], numbers: np.ndarray) -> dict[str, Case]:
    words, ids = pa.array([f"key{number}" for number in numbers]), key_ids(numbers)
    return {
        **{name: lambda n=name: Router(make(n, W)).route(key_ids(words)) for name in names},
        "hashing the strings alone": lambda: key_ids(words),
        "sketch alone": lambda: count_keys(new_sketch(counters_of(make("d_choices", W))), ids),
        **{f"{name}, key ids ready": lambda n=name: Router(make(n, W)).route(ids) for name in names},
    }


def main() -> None:
    console.rule(f"Hot keys: string keys to workers, W = {W}, one core")
    for title, stream in zip(ELSEWHERE, (Zipf(1.4, 10_000, TUPLES), Zipf(1.0, 1_000_000, TUPLES)), strict=True):
        numbers = np.concatenate([chunk.keys for chunk in stream.chunks()])
        seconds = interleaved(cases_for(ELSEWHERE[title], numbers))
        show(title, seconds, TUPLES, "pkg")
        against(title, seconds)

    ids = key_ids(numbers)
    cases = {
        f"{name} W = {workers:,}": (lambda n=name, w=workers: Router(make(n, w)).route(ids))
        for name in ("w_choices", "d_choices", "fish")
        for workers in (10, 100, 1_000, 10_000)
    }
    show("growth with workers: zipf z=1, K = 1,000,000, key ids ready", interleaved(cases), TUPLES, next(iter(cases)))


if __name__ == "__main__":
    main()
