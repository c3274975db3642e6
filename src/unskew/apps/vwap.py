"""The volume-weighted average price of each ticker, whole keys, with workers added while it runs (Gedik, section 2).

One worker must see all trades of a ticker in order: each price is compared with the average so far, and it is counted
how often it crosses it, a signal that traders use. So no ticker is split. Hot tickers are placed evenly by a
partitioning function, and when workers are added, a new function is made that moves few of them.

On Spark the state of a ticker is a row. It is put beside the trades of the next micro-batch and goes where they go, so
nothing else is needed to move it to another worker.
"""

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

from unskew.apps.found import Found, bars, max_over_mean
from unskew.apps.job import Job
from unskew.apps.samples import TRADES
from unskew.checks import require_integer
from unskew.errors import InputError
from unskew.partitioning import ALGORITHMS, PartitionFunction
from unskew.plan import Plan
from unskew.spark import apply_whole, rebalance

STATE = "trades bigint, shares bigint, value double, vwap double, crossings bigint, side int"  # of a ticker
NEW = {"trades": 0, "shares": 0, "value": 0.0, "crossings": 0, "side": 0}
GOOD = "ticker IS NOT NULL AND price IS NOT NULL AND volume > 0"
CODE = """placement = rebalance(trades, "ticker", workers + 4, previous=placement.plan)
rows = trades.unionByName(state, allowMissingColumns=True)  # the state of a ticker is a row beside its trades
state = apply_whole(rows, "ticker", advance, STATE, workers + 4, plan=placement.plan, sort="time")"""


def advance(rows: pa.Table) -> pa.Table:
    """The state of a ticker after its trades, which come in order of time. Its state so far is one row among them.

    >>> advance(pa.table({"price": [10.0, 12.0, 10.0], "volume": [100, 300, 100]})).to_pylist()
    [{'trades': 3, 'shares': 500, 'value': 5600.0, 'vwap': 11.2, 'crossings': 1, 'side': -1}]
    """
    known = pc.is_valid(rows["trades"]) if "trades" in rows.column_names else pa.array([False] * len(rows))
    before, new = rows.filter(known), rows.filter(pc.invert(known))
    if len(new) == 0:
        return before.select([column.split()[0] for column in STATE.split(", ")])
    state: dict[str, Any] = before.to_pylist()[0] if len(before) else NEW
    price, volume = new["price"].to_numpy(), new["volume"].to_numpy()
    shares, value = state["shares"] + np.cumsum(volume), state["value"] + np.cumsum(price * volume)
    average = value / shares
    off = np.where(np.isclose(price, average), 0.0, price - average)  # a trade at the average is on neither side
    sides = [int(side) for side in (state["side"], *np.sign(off)) if side]
    return pa.table(
        {
            "trades": [state["trades"] + len(new)],
            "shares": [int(shares[-1])],
            "value": [float(value[-1])],
            "vwap": [float(average[-1])],
            "crossings": [state["crossings"] + sum(a != b for a, b in zip(sides, sides[1:], strict=False))],
            "side": pa.array([sides[-1] if sides else 0], pa.int32()),
        }
    )


def advance_all(
    trades: DataFrame, state: DataFrame | None, workers: int, plan: Plan | PartitionFunction | None
) -> DataFrame:
    """The states of all tickers after some trades, and on which worker each was. `state` is what it returned before."""

    def on_worker(rows: pa.Table) -> pa.Table:
        task = TaskContext.get()
        assert task is not None, "only within a task"
        return advance(rows).append_column("worker", pa.array([task.partitionId()], pa.int32()))

    rows = trades if state is None else trades.unionByName(state.drop("worker"), allowMissingColumns=True)
    schema = f"ticker string, {STATE}, worker int"
    return apply_whole(rows, "ticker", on_worker, schema, workers, plan=plan, sort="time")


class Exchange:
    """The tickers' states and places from one micro-batch to the next."""

    def __init__(self, job: Job, algorithm: str, add: int, after: int) -> None:
        self.job, self.algorithm, self.add, self.after = job, algorithm, add, after
        self.plan: Plan | PartitionFunction | None = None
        self.state: DataFrame | None = None
        self.workers = 0
        self.steps: list[dict[str, Any]] = []

    def step(self, trades: DataFrame, number: int) -> None:
        """Take in the trades of a micro-batch."""
        began, workers = time.perf_counter(), self.job.workers + (self.add if number >= self.after else 0)
        if workers != self.workers:
            self.plan = rebalance(trades, "ticker", workers, self.plan, algorithm=self.algorithm).plan
        path = str(self.job.scratch / f"state-{number}")
        advance_all(trades, self.state, workers, self.plan).write.mode("overwrite").parquet(path)
        state = self.job.spark.read.parquet(path)
        seconds = time.perf_counter() - began
        self.steps.append(
            {"batch": number + 1, "seconds": seconds, "workers": workers} | self._measured(trades, state, workers)
        )
        self.state, self.workers = state, workers

    def _measured(self, trades: DataFrame, state: DataFrame, workers: int) -> dict[str, Any]:
        """Trades of each worker and tickers that moved, and what both would be by Spark's hash. One native job."""
        tickers = state.selectExpr("ticker", "worker AS now").join(trades.groupBy("ticker").count(), "ticker", "left")
        before = state.where("false") if self.state is None else self.state
        tickers = tickers.join(before.select("ticker", "worker"), "ticker", "left")
        by_hash, before_by_hash = (f"pmod(hash(ticker), {each})" for each in (workers, self.workers or 1))
        groups = {"now": "now", "hashed": by_hash, "moved": "coalesce(worker <> now, false)"}
        groups["rehashed"] = f"worker IS NOT NULL AND {before_by_hash} <> {by_hash}"
        sums = F.count("ticker").alias("tickers"), F.sum(F.expr("coalesce(count, 0)")).alias("trades")
        found = tickers.groupBy(*(F.expr(text).alias(name) for name, text in groups.items())).agg(*sums).collect()
        load, hashed = [0] * workers, [0] * workers
        for row in found:
            load[row["now"]] += row["trades"]
            hashed[row["hashed"]] += row["trades"]
        measured = {"trades": sum(load), "load": load, "max_over_mean": max_over_mean(load)}
        measured |= {"load_by_hash": hashed, "hash_max_over_mean": max_over_mean(hashed)}
        measured["tickers_moved"] = sum(row["tickers"] for row in found if row["moved"])
        return measured | {"tickers_moved_by_hash": sum(row["tickers"] for row in found if row["rehashed"])}


def run(job: Job, add: int = 0, after: int = 2) -> Found:
    """Follow the average prices. From micro-batch number `after` on (the first is 0) there are `add` workers more."""
    algorithm = job.scheme or "readj"
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise InputError(f"scheme: must be one of {', '.join(ALGORITHMS)}, which keep keys whole, not {job.scheme!r}")
    require_integer("add", add, 0, 10_000)
    require_integer("after", after, 1, 1_000_000)
    if add and not job.source.is_stream:
        raise InputError("add: workers are added between micro-batches; give a folder, --batches or --rate")
    exchange = Exchange(job, algorithm, add, after)
    job.each_batch(job.read(TRADES).select(*TRADES.columns).where(GOOD), exchange.step)
    assert exchange.state is not None
    job.write(exchange.state.drop("side", "value"))
    return _found(exchange, exchange.state.orderBy("trades", ascending=False).limit(10).collect())


def _found(exchange: Exchange, top: list[Any]) -> Found:
    steps, last = exchange.steps, exchange.steps[-1]
    said = [
        f"{sum(step['trades'] for step in steps):,} trades. Of {last['workers']} workers the busiest has "
        f"{last['max_over_mean']:.2f} times the mean; by Spark's hash it would have {last['hash_max_over_mean']:.2f}."
    ]
    said += [
        f"In micro-batch {step['batch']} there were {exchange.add} workers more: {step['tickers_moved']} tickers moved "
        f"with their state; by hash {step['tickers_moved_by_hash']} would have."
        for before, step in zip(steps, steps[1:], strict=False)
        if step["workers"] != before["workers"]
    ]
    columns = {"batch": "{batch}", "trades": "{trades:,}", "workers": "{workers}", "seconds": "{seconds:.1f}"}
    columns |= {"busiest / mean": "{max_over_mean:.2f}", "by hash": "{hash_max_over_mean:.2f}"}
    columns |= {"tickers moved": "{tickers_moved}", "moved by hash": "{tickers_moved_by_hash}"}
    loads = bars({"placed by unskew": last["load"], "by hash": last["load_by_hash"]}, "trades")
    facts = {"scheme": exchange.algorithm, "batches": steps, "top": [row.asDict() for row in top]}
    return Found("Average prices, whole tickers", said, columns, steps, facts, [(loads, "The last batch.")], CODE)
