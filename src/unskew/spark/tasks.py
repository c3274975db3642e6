"""What a task knows of itself."""

from pyspark import TaskContext

from unskew.errors import InputError

BATCH_ID = "streaming.sql.batchId"


def task_number() -> int:
    """The number of this task among those of its stage, the same when it runs again."""
    task = TaskContext.get()
    return 0 if task is None else task.partitionId()


def this_batch() -> int:
    """The number of the micro-batch that this task is of."""
    task = TaskContext.get()
    found = None if task is None else task.getLocalProperty(BATCH_ID)
    if found is None:
        raise InputError("checkpoint: the task does not know its micro-batch, so it cannot go on from the last one")
    return int(found)
