"""How else the experiments on CG can be read: what utilisation is, how long a wish stays, and how tuples come.

Each of these is a reading of its own, since each may change a verdict. The paper's text is "as printed": utilisation is
what was assigned over the capacity (section VII-A), a worker that asks for nothing withdraws its wish, and tuples come
at an even pace. The authors' public code has what was executed, and wishes that stay; WP has busy and quiet hours.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unskew.experiments.cg.cluster import RATE, UNEQUAL, grouping, queues_of
from unskew.experiments.claims import verdict
from unskew.schemes.cg import ConsistentGrouping
from unskew.simulate import Queues
from unskew.streams import CHUNK, Chunk, Stream

SWING = 0.2  # of the daily cycle: the rate is 1 +- SWING times the mean (ours: WP's own hours cannot be had)


class Reading(NamedTuple):
    """One way to read the paper."""

    name: str
    text: str  # what is read otherwise, and what speaks for it
    options: tuple[tuple[str, bool], ...] = ()  # of CG
    swing: float = 0.0  # of the daily cycle: positive where the day begins with busy hours, negative with quiet ones

    def scheme(self, workers: int, virtual: int = 10) -> ConsistentGrouping:
        return grouping(workers, virtual, **dict(self.options))

    def stream(self, even: Stream) -> Stream:
        return Daily(even, self.swing, (even.length or 0) / RATE) if self.swing else even

    def queues(self, workers: int) -> Queues:
        return queues_of(UNEQUAL, workers, own_times=bool(self.swing))


_EXECUTED, _PATIENT = ("drain", True), ("patient", True)
_CYCLE = f"arrivals follow a daily cycle of plus and minus {100 * SWING:.0f} % (ours; WP's own cannot be had)"
PRINTED = Reading("as printed", "")
EXECUTED = Reading(
    "executed",
    "utilisation is what was executed over the capacity, as in the authors' public code; the text has what was "
    "assigned",
    (_EXECUTED,),
)
PATIENT = Reading(
    "patient", "a wish stays in its queue until it is served, as in the authors' public code", (_PATIENT,)
)
CODE = Reading("both, as in the code", "both of these together", (_EXECUTED, _PATIENT))
NIGHT = Reading("quiet hours first", f"{_CYCLE}, and the day begins at night, with quiet hours", swing=-SWING)
DAY = Reading("busy hours first", "the same cycle, but the day begins with busy hours", swing=SWING)
CODE_NIGHT = Reading(
    "as in the code, quiet hours first", "the public code, on a day that begins at night", CODE.options, NIGHT.swing
)
OF_WISHES = (EXECUTED, PATIENT, CODE)
READINGS = (*OF_WISHES, NIGHT, DAY, CODE_NIGHT)


@dataclass(frozen=True)
class Daily(Stream):
    """Another stream whose tuples come in a daily cycle, as many in a day as before.

    With a positive `swing` most come after a quarter of the day and fewest after three; with a negative one it is the
    other way round, as on a day that begins at midnight.
    """

    stream: Stream
    swing: float
    seconds: float  # of a day

    @property
    def length(self) -> int | None:
        return self.stream.length

    def chunks(self, size: int = CHUNK) -> Iterator[Chunk]:
        day = np.linspace(0.0, self.seconds, 14_401)
        turn = 2 * np.pi / self.seconds
        shares = (day + self.swing / turn * (1 - np.cos(turn * day))) / self.seconds  # of the day's tuples, until then
        for chunk in self.stream.chunks(size):
            days = chunk.times / self.seconds
            times = np.interp(days % 1.0, shares, day) + np.floor(days) * self.seconds
            yield chunk._replace(times=times)


def judged(runs: Mapping[Reading, Any], holds: Callable[[Any], bool], shown: Callable[[Any], str]) -> dict[str, Any]:
    """Verdict, readings and what was measured under them, for a `Finding`; `runs` has PRINTED and the other readings.

    Beside each reading it is said whether the rule holds, so that nobody has to take the best of them.
    """
    others = {reading: found for reading, found in runs.items() if reading is not PRINTED}
    held = [reading for reading, found in others.items() if holds(found)]
    return {
        "verdict": verdict(holds(runs[PRINTED]), bool(held)),
        "reading": "; ".join(f"({reading.name}) {reading.text}" for reading in others),
        "measured_so": "; ".join(
            f"{reading.name}, rule {'holds' if reading in held else 'does not hold'}: {shown(found)}"
            for reading, found in others.items()
        ),
    }
