"""The states of worker halves, from one micro-batch to the next: each worker leaves its own in the side folder."""

import json
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.spark.frames import warn
from unskew.spark.messages import Start
from unskew.spark.streaming.batch_files import BatchFiles
from unskew.spark.streaming.told_files import ToldFiles
from unskew.worker_half import WorkerHalf

HALVES = "halves"


class HalfFiles(NamedTuple):
    """Where worker halves leave their states, and their messages for sources. Travels with tasks."""

    told: ToldFiles

    def start(self, scheme: Scheme, worker: int) -> Start:
        """What a worker left in its last micro-batch before this one. When it was done, it had nothing to do until the
        longest one was."""
        left = self._files.latest(_name(worker))
        if left is None:
            return Start(None, 0.0, 1)
        try:
            mine = json.loads(left.data)
            start = Start(b64decode(mine["half"]), float(mine["idle"]), int(mine["sources"]))
            WorkerHalf.from_bytes(scheme, start.half or b"", 1, start.sources)
            longest = max(each["seconds"] for each in self.told.of(left.batch).values())
            waited = longest - mine["seconds"] + start.idle
        except (InputError, KeyError, TypeError, ValueError) as error:
            warn(f"halves: worker {worker} starts empty, since its file is no state of it: {error}")
            return Start(None, 0.0, 1)
        return start._replace(idle=waited)

    def keep(self, worker: int, done: dict[str, Any]) -> None:
        """Leave what a worker is at the end of its micro-batch, and tell sources what it has for them."""
        messages = [
            {**each, "told": None if each.get("told") is None else b64encode(each["told"]).decode()}
            for each in done["messages"]
        ]
        mine = {name: done[name] for name in ("seconds", "idle", "sources")}
        left = {**mine, "half": b64encode(done["half"]).decode()}
        self.told.tell(worker, {"seconds": done["seconds"], "messages": messages})
        self._files.leave(_name(worker), json.dumps(left).encode())

    @property
    def _files(self) -> BatchFiles:
        return BatchFiles(self.told.checkpoint, self.told.name, HALVES)


def _name(worker: int) -> str:
    return f"{worker}.json"
