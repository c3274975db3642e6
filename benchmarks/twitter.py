"""The largest data set of the papers: the Twitter stand-in, 1.2 billion tuples, 31 million keys, W = 100, S = 5."""

import resource
import sys
import time

from timing import console
from unskew import make
from unskew.simulate import simulate
from unskew.streams import StandIn


def main(tuples: int = 0) -> None:
    stream = StandIn("TW", tuples)
    console.rule(f"Twitter stand-in: {stream.tuples:,} tuples, pkg, W = 100, S = 5, replicas counted")
    started, done = time.perf_counter(), 0

    def progress(tuples: int) -> None:
        nonlocal done
        before, done = done * 10 // stream.tuples, done + tuples
        if done * 10 // stream.tuples > before:
            console.print(f"  {done / stream.tuples:.0%} after {time.perf_counter() - started:.0f} s")

    (result,) = simulate(stream, [make("pkg", 100)], sources=5, progress=progress)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    console.print(
        f"{time.perf_counter() - started:.0f} s in all ({result.stream_seconds:.0f} s of it making the stream), "
        f"{result.keys:,} keys, {result.replicas:,} replicas, max/mean {result.max_over_mean:.3f}, "
        f"I(m)/m {result.imbalance_fraction:.2e}, peak memory {peak:.2f} GiB"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
