"""Runs deployments on one local Spark: as many at a time as there are task threads for.

They are started in the order of the list, which goes through all schemes of a point before it repeats any, so that
whatever else happens on the machine happens to all schemes alike. Only those that take minutes come first.
"""

import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unskew.errors import InputError
from unskew.experiments.grid import Outcome, Outcomes, last_line
from unskew.experiments.kept_passes import KeptPasses

TASK_THREADS = 64  # workers that sleep at the same time
MASTER = f"local[{TASK_THREADS}]"
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.python.daemon.module": "unskew.spark.deployed_daemon",  # workers that are ready at once
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",  # plans are small and fixed
}
WAIT = 0.2  # seconds between two looks at what is done


class TaskThreads:
    """Task threads, given to jobs in the order in which they ask."""

    def __init__(self, number: int) -> None:
        self._free, self._changed = number, threading.Condition()

    def take(self, number: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._free >= number)
            self._free -= number

    def give_back(self, number: int) -> None:
        with self._changed:
            self._free += number
            self._changed.notify_all()


def run_deployed(spark: Any, jobs: Sequence[Any], progress: Callable[[int], None], kept: KeptPasses) -> Outcomes:
    """Run `jobs` on the local session `spark`; `progress` gets the number of jobs done since its last call.

    None is `kept`: what was measured in another run, at another time, is not to be compared with this one.
    """
    from unskew.spark import require_task_threads, run_watched

    most = max((job.task_threads for job in jobs), default=0)
    require_task_threads(spark, most)
    available = spark.sparkContext.defaultParallelism
    results: dict[int, list[Any]] = {}
    errors: list[Exception] = []
    seen = 0

    def start_all() -> None:
        task_threads, started = TaskThreads(available), []

        def one(number: int, folder: Path) -> None:
            try:
                results[number] = jobs[number].run(spark, folder)
            except Exception as error:
                errors.append(error)
            finally:
                task_threads.give_back(jobs[number].task_threads)

        with tempfile.TemporaryDirectory(prefix="unskew-deployments-") as folder:
            for number in sorted(range(len(jobs)), key=lambda number: not jobs[number].long):  # else in order
                task_threads.take(jobs[number].task_threads)
                if errors:
                    break
                started.append(threading.Thread(target=one, args=(number, Path(folder)), daemon=True))
                started[-1].start()
            for thread in started:
                thread.join()

    def watch() -> None:
        nonlocal seen
        done = len(results)
        progress(done - seen)
        seen = done

    run_watched(start_all, watch, WAIT)
    if errors:
        raise InputError(f"spark: a deployment failed: {last_line(errors[0])}") from errors[0]
    return Outcomes(Outcome(job, result) for number, job in enumerate(jobs) for result in results[number])
