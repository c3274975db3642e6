"""The load of the workers and how uneven it is.

Load L_i(t): tuples that worker i got so far. Imbalance I(t): the highest load less the mean. Work: the cost of these
tuples, where they have costs.
"""

from typing import NamedTuple

import numpy as np

from unskew.contract import Loads, Times, Workers
from unskew.kernels import kernel
from unskew.members import Names, carried_over


class Sample(NamedTuple):
    """The balance at one moment.

    Attributes
    ----------
    tuples, time
        How many tuples have come, and the time by the stream's clock.
    imbalance
        I(t), the highest load less the mean.
    max_load
        The highest load.

    Examples
    --------
    >>> from unskew import Hash
    >>> from unskew.simulate import simulate
    >>> from unskew.streams import Zipf
    >>> sample = simulate(Zipf(z=1.0, keys=100, tuples=1000), [Hash(workers=4)])[0].samples[-1]
    >>> sample.tuples, sample.max_load - sample.imbalance
    (1000, 250.0)
    """

    tuples: int
    time: float
    imbalance: float
    max_load: int


LOCAL = 10  # tuples per worker of a window in which balance is local


class Load:
    """The load of each worker, the mean of I(t) over all tuples, and the mean of how uneven short windows are.

    When workers come or go, the count starts anew: I(t) compares the workers that are there by what they got since the
    last change. A worker that joined late is not compared with what others got before. `by_name` is of the whole run.

    `workers` are there at the start; `names` are all that will ever be there, those that join later included.
    """

    def __init__(self, workers: int, names: int | None = None) -> None:
        self.vector = np.zeros(workers, np.int64)  # by index, since the last change
        self._last_time = 0.0
        self._tops = np.zeros(3, np.int64)  # max load, tuples, sum of the max load after each tuple
        self._tuples_before = 0  # the last change of workers
        self._imbalances_before = 0.0  # sum of I(t) until then
        self._by_name_before = np.zeros(workers if names is None else names, np.int64)
        self._known_before = np.zeros(workers, np.int64)
        self._recent = np.zeros(workers, np.int64)  # by index, in the present window
        self._windows = np.zeros(4, np.int64)  # tuples and highest load of the present one; number, sum of the highest

    def add(self, chosen: Workers, times: Times) -> None:
        """One tuple per worker index of `chosen`, at `times`."""
        if len(chosen):
            _add_load(self.vector, self._tops, chosen)
            _add_recent(self._recent, self._windows, chosen)
            self._last_time = float(times[-1])

    def change_workers(self, before: Names, after: Names) -> None:
        """From now on there are the workers named `after`, in the place of those named `before`."""
        self._imbalances_before = self.mean_imbalance * self.tuples
        self._tuples_before = self.tuples
        self._by_name_before[before] += self.vector
        self._known_before = carried_over(self.known, before, after)
        self.vector = np.zeros(len(after), np.int64)
        self._tops = np.zeros(3, np.int64)
        self._recent = np.zeros(len(after), np.int64)
        self._windows[:2] = 0

    @property
    def tuples(self) -> int:
        return self._tuples_before + self.tuples_since

    @property
    def tuples_since(self) -> int:
        """Since workers last came or went."""
        return int(self._tops[1])

    @property
    def imbalance(self) -> float:
        return float(self._tops[0]) - self.tuples_since / len(self.vector)

    @property
    def max_over_mean(self) -> float | None:
        """None where there were no tuples."""
        return float(self._tops[0]) * len(self.vector) / self.tuples_since if self.tuples_since else None

    @property
    def local_max_over_mean(self) -> float | None:
        """Highest over mean load in windows of 10 tuples per worker, on average; None where not one was whole."""
        _, _, windows, sum_highest = self._windows.tolist()
        return sum_highest / (LOCAL * windows) if windows else None

    @property
    def mean_imbalance(self) -> float:
        """The average of I(t) over t = 1..m."""
        since = self.tuples_since
        mean = int(self._tops[2]) / since - (since + 1) / 2 / len(self.vector) if since else 0.0
        return (self._imbalances_before + mean * since) / self.tuples if self._tuples_before else mean

    @property
    def known(self) -> Loads:
        """What a probe tells of each worker, by index: all that it got; one that joined began with the least of the
        others."""
        return self._known_before + self.vector

    def by_name(self, members: Names) -> Loads:
        """What each worker got in the whole run, by name; `members` are there now."""
        total = self._by_name_before.copy()
        total[members] += self.vector
        return total

    @property
    def sample(self) -> Sample:
        """The balance as it is now."""
        return Sample(self.tuples, self._last_time, self.imbalance, int(self._tops[0]))


class Work:
    """The cost of what each worker got, by name; like `Load`, balance counts anew when workers come or go."""

    def __init__(self, names: int) -> None:
        self.by_name = np.zeros(names)
        self._before = np.zeros(names)  # the last change of workers

    def add(self, names: Workers, costs: Times) -> None:
        """One tuple per name, at these costs."""
        _add_work(self.by_name, names, costs)

    def change_workers(self) -> None:
        """Workers come or go."""
        self._before = self.by_name.copy()

    def max_over_mean(self, members: Names) -> float | None:
        """Of the workers that are there; None where they got no work."""
        since = (self.by_name - self._before)[members]
        return float(since.max() / since.mean()) if since.any() else None


@kernel
def _add_work(work, names, costs):
    for i in range(len(names)):
        work[names[i]] += costs[i]


@kernel
def _add_load(vector, tops, chosen):
    highest, tuples, sum_highest = tops
    for i in range(len(chosen)):
        vector[chosen[i]] += 1
        highest = max(highest, vector[chosen[i]])
        sum_highest += highest
    tops[0], tops[1], tops[2] = highest, tuples + len(chosen), sum_highest


@kernel
def _add_recent(recent, windows, chosen):
    tuples, highest, number, sum_highest = windows
    length = LOCAL * len(recent)
    for i in range(len(chosen)):
        recent[chosen[i]] += 1
        highest = max(highest, recent[chosen[i]])
        tuples += 1
        if tuples == length:
            number += 1
            sum_highest += highest
            tuples = highest = 0
            for worker in range(len(recent)):
                recent[worker] = 0
    windows[0], windows[1], windows[2], windows[3] = tuples, highest, number, sum_highest
