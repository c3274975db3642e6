"""Routing alone, key ids ready: one core. How it grows with workers W, keys K, and the cost of hashing keys."""

import numpy as np
import pyarrow as pa

from timing import console, interleaved, show
from unskew import InputError, Router, Scheme, key_ids, make
from unskew.registry import SCHEMES
from unskew.streams import Zipf

TUPLES = 2_000_000


def ids_of(keys: int, z: float = 1.0) -> np.ndarray:
    return np.concatenate([chunk.key_ids() for chunk in Zipf(z, keys, TUPLES).chunks()])


def scheme_for(name: str, workers: int, ids: np.ndarray) -> Scheme:
    if SCHEMES[name].offline:
        return SCHEMES[name].type.fit(workers, *np.unique(ids, return_counts=True))
    return make(name, workers)


def allows(name: str, workers: int) -> bool:
    """Whether the scheme takes so many workers."""
    try:
        return SCHEMES[name].offline or bool(make(name, workers))
    except InputError:
        return False


def main() -> None:
    console.rule("Kernels: key ids to workers, one core")
    ids = ids_of(10_000)
    for workers in (5, 100, 1_000, 10_000):
        schemes = {name: scheme_for(name, workers, ids) for name in SCHEMES if allows(name, workers)}
        cases = {name: (lambda s=scheme: Router(s).route(ids)) for name, scheme in schemes.items()}
        show(f"W = {workers:,}; zipf z=1, K = 10,000", interleaved(cases), TUPLES, "pkg")

    by_keys = {keys: ids_of(keys) for keys in (1_000, 100_000, 10_000_000)}
    for name in ("pkg", "potc"):
        cases = {
            f"{name} K = {keys:,}": (lambda n=name, i=ids: Router(make(n, 100)).route(i))
            for keys, ids in by_keys.items()
        }
        show(f"growth with keys: {name}, W = 100", interleaved(cases), TUPLES, next(iter(cases)))

    cases = {f"d = {d}": (lambda d=d: Router(make("pkg", 100, choices=d)).route(ids)) for d in (1, 2, 4, 16)}
    show("growth with choices: pkg, W = 100", interleaved(cases), TUPLES, "d = 2")

    numbers = np.concatenate([chunk.keys for chunk in Zipf(1.0, 10_000, TUPLES).chunks()])
    words = pa.array([f"word{number}" for number in numbers])
    cases = {
        "hash int64 keys": lambda: key_ids(numbers),
        "hash string keys": lambda: key_ids(words),
        "string keys to workers, hash": lambda: Router(make("hash", 100)).route(key_ids(words)),
        "string keys to workers, pkg": lambda: Router(make("pkg", 100)).route(key_ids(words)),
    }
    show("from keys to workers, W = 100", interleaved(cases), TUPLES, "string keys to workers, pkg")


if __name__ == "__main__":
    main()
