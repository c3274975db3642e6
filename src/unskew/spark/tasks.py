"""What a task knows of itself, and of the process of Python that it runs in."""

import gc
import sys

from pyspark import TaskContext

from unskew.errors import InputError

BATCH_ID, QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"
_modules_spared = 0


def task_number() -> int:
    """The number of this task among those of its stage, the same when it runs again."""
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


def this_batch() -> int:
    """The number of the micro-batch that this task is of."""
    task = TaskContext.get()
    found = None if task is None else task.getLocalProperty(BATCH_ID)
    if found is None:
        raise InputError(
            "checkpoint: the task does not know its micro-batch, so it cannot go on from the last one. On Spark "
            "Connect that is so with foreachBatch: write to another sink, or take a scheme that can be planned"
        )
    return int(found)


def spare_what_is_loaded() -> None:
    """Spare the garbage collector what this process of Python has loaded, again when there are more modules.

    Spark collects garbage after each task, and goes through all objects for it: some 15 ms with pandas, Arrow and Numba
    loaded, for a task that may itself take 5 ms. What is garbage now is collected first. The function that runs now is
    spared too: what it holds may stay until more is loaded.
    """
    global _modules_spared
    if len(sys.modules) > _modules_spared:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        _modules_spared = len(sys.modules)
