"""The simulator with exact replicas: stream, key table, routing and metrics. How it grows with keys K and sources S.

Then what queues add: latency, queue lengths and utilisation; bounded queues, events; reports to a scheme that listens.
"""

from timing import console, interleaved, show
from unskew import make
from unskew.simulate import Queues, simulate
from unskew.streams import Costed, Zipf

TUPLES = 2_000_000


def main() -> None:
    console.rule("Simulator: from the generated stream to exact metrics, one core")
    cases = {
        f"K = {keys:,}, S = {sources}": (
            lambda k=keys, s=sources: simulate(Zipf(1.0, k, TUPLES), [make("pkg", 100)], sources=s)
        )
        for keys, sources in ((10_000, 1), (10_000, 5), (10_000, 50), (1_000_000, 5))
    }
    cases["K = 10,000, S = 5, no replicas"] = lambda: simulate(
        Zipf(1.0, 10_000, TUPLES), [make("pkg", 100)], sources=5, replicas=False
    )
    cases["the stream alone, K = 10,000"] = lambda: sum(len(c.key_ids()) for c in Zipf(1.0, 10_000, TUPLES).chunks())
    show("pkg, W = 100, zipf z=1", interleaved(cases), TUPLES, "K = 10,000, S = 5")

    console.rule("Simulator with queues, replicas counted: W = 100, S = 1, K = 10,000")
    stream, scheme = Zipf(1.0, 10_000, TUPLES), make("pkg", 100)
    options = {
        "no queues": {},
        "queues at utilisation 0.8": {"queues": Queues(utilisation=0.8)},
        "queues at utilisation 0.1, hardly any waiting": {"queues": Queues(utilisation=0.1)},
        "queues of at most 100": {"queues": Queues(utilisation=0.8, bound=100)},
        "queues and 4 events": {
            "queues": Queues(utilisation=0.8),
            "events": ["t=400k add", "t=800k crash 3", "t=1.2M capacity 0-9:2", "t=1.6M remove 7"],
        },
    }
    cases = {name: (lambda o=option: simulate(stream, [scheme], **o)) for name, option in options.items()}
    show("pkg, zipf z=1", interleaved(cases), TUPLES, "no queues")

    console.rule("Queues that serve tuples by their costs, no replicas: W = 100, S = 1, K = 4,096, utilisation 0.8")
    costed = Costed(1.0, 4096, TUPLES)
    cases = {
        f"{name}, {how}": (
            lambda n=name, s=each: simulate(s, [make(n, 100)], queues=Queues(utilisation=0.8), replicas=False)
        )
        for name in ("shuffle", "pkg")
        for how, each in (("no costs", Zipf(1.0, 4096, TUPLES)), ("64 costs", costed))
    }
    for name in ("full_knowledge", "posg"):
        cases[f"{name}, 64 costs"] = lambda n=name: simulate(
            costed, [make(n, 100)], queues=Queues(utilisation=0.8), replicas=False, samples=1
        )
    cases["the stream with its costs alone, twice (its mean cost sets the rate)"] = lambda: (
        costed.mean_cost(),
        sum(len(c.key_ids()) for c in costed.chunks()),
    )
    show("zipf z=1, from the generated stream to the metrics", interleaved(cases), TUPLES, "shuffle, no costs")

    console.rule(
        "Schemes with queues at utilisation 0.8: W = 100, S = 1, K = 10,000; cg hears of 100 workers each 10 s"
    )
    cases = {
        f"{name}, {how}": (lambda n=name, q=queues: simulate(stream, [make(n, 100)], queues=q))
        for name in ("hash", "pkg", "porc", "cg")
        for how, queues in (("no queues", None), ("queues", Queues(utilisation=0.8)))
    }
    cases["cg, queues, a window of 60 s"] = lambda: simulate(
        stream, [make("cg", 100, window=60.0)], queues=Queues(utilisation=0.8)
    )
    show("zipf z=1", interleaved(cases), TUPLES, "pkg, queues")


if __name__ == "__main__":
    main()
