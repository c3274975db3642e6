"""The workers that are there, by name."""

import numpy as np

from unskew.contract import Workers
from unskew.errors import InputError
from unskew.members import Names
from unskew.simulate.events import Event


class Crew:
    """The workers that are there. Each has a name for life; its index is its place among those that are there."""

    def __init__(self, workers: int) -> None:
        self.names: Names = np.arange(workers)  # by index
        self.ever = workers  # names given so far
        self._changed = False

    def names_of(self, chosen: Workers) -> Workers:
        """The name of the worker at each index of `chosen`."""
        return self.names[chosen].astype(np.int32) if self._changed else chosen

    def change(self, event: Event) -> None:
        """Let workers join, with the next free names, or leave; InputError where those that leave are not there."""
        if event.what == "add":
            self.names = np.append(self.names, np.arange(self.ever, self.ever + event.count))
            self.ever += event.count
        else:
            leaving = np.array(event.workers)
            absent = leaving[~np.isin(leaving, self.names)]
            if len(absent):
                raise InputError(f"event: {event.brief}: worker {absent[0]} is not there at that time")
            staying = self.names[~np.isin(self.names, leaving)]
            if not len(staying):
                raise InputError(f"event: {event.brief} would leave no worker")
            self.names = staying
        self._changed = True
