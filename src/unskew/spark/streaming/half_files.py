"""The states of worker halves, from one micro-batch to the next: each worker leaves its own in the side folder."""

import json
import math
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from unskew.contract import Scheme
from unskew.router import Router
from unskew.spark.frames import warn
from unskew.spark.messages import Start, content_of, in_order
from unskew.spark.streaming.batch_files import BatchFiles, Left
from unskew.spark.streaming.told_files import ToldByWorker, ToldFiles
from unskew.worker_half import WorkerHalf

HALVES = "halves"


class HalfFiles(NamedTuple):
    """Where worker halves leave their states, and their messages for sources. Travels with tasks."""

    told: ToldFiles

    def start(self, scheme: Scheme, worker: int) -> Start:
        """What a worker left in its last micro-batch before this one. When it was done, it had nothing to do until the
        longest one was."""
        starts = (self._start(scheme, worker, left) for left in self._files.left(_name(worker)))
        return next((start for start in starts if start is not None), Start(None, 0.0, 1))

    def keep(self, worker: int, done: dict[str, Any]) -> None:
        """Leave what a worker is at the end of its micro-batch, and tell sources what it has for them."""
        messages = [
            {**each, "told": None if each.get("told") is None else b64encode(each["told"]).decode()}
            for each in done["messages"]
        ]
        half = b64encode(done["half"]).decode()
        self.told.tell(worker, {"seconds": done["seconds"], "messages": messages})
        left = {"seconds": done["seconds"], "sources": done["sources"], "half": half}
        self._files.leave(_name(worker), json.dumps(left).encode())

    def _start(self, scheme: Scheme, worker: int, left: Left) -> Start | None:
        try:
            mine = json.loads(left.data)
            half, sources, seconds = b64decode(mine["half"]), int(mine["sources"]), float(mine["seconds"])
            WorkerHalf.from_bytes(scheme, half, 1, sources)  # InputError unless it is one
            longest = max([seconds, *(float(each["seconds"]) for each in self.told.of(left.batch).values())])
        except Exception as error:  # a damaged file may hold anything, and must not end the query
            warn(f"halves: the file of worker {worker} of micro-batch {left.batch} is no state of it: {error}")
            return None
        idle = longest - seconds
        return Start(half, idle if math.isfinite(idle) else 0.0, sources)

    @property
    def _files(self) -> BatchFiles:
        return BatchFiles(self.told.checkpoint, self.told.name, HALVES)


def hear_messages(router: Router, source: int | None, batch: int, told: ToldByWorker) -> bool:
    """Let the router of a source hear the messages for it and for all that workers of a stream left. Whether there were
    any."""
    messages = [
        (worker, {**each, "told": None if each["told"] is None else b64decode(each["told"])})
        for worker, each in in_order({worker: done["messages"] for worker, done in told.items()})
        if each["source"] in (None, source)
    ]
    for worker, message in messages:
        router.hear(worker, content_of(router.scheme, message))
    return bool(messages)


def _name(worker: int) -> str:
    return f"{worker}.json"
