"""Whether all events can take place, as far as that can be known before the run.

A long run should not end at its last event.
"""

from collections.abc import Sequence

from unskew.contract import Scheme
from unskew.router import Router
from unskew.simulate.crew import Crew
from unskew.simulate.events import Event


def rehearse(scheme: Scheme, events: Sequence[Event], rate: float | None) -> None:
    """InputError where the scheme cannot follow workers that come and go, or where a worker that leaves is not there.

    The second is known only where the order of the events is. A scheme may still refuse a number of workers when it
    comes to that; the run then ends with its reason.
    """
    changes = [event for event in events if event.what != "capacity"]
    if not changes:
        return
    router, crew = Router(scheme), Crew(scheme.workers)
    router.change_workers(crew.names)
    for event in _in_order(changes, rate):
        crew.change(event)


def _in_order(events: Sequence[Event], rate: float | None) -> list[Event]:
    """The events as they take place; none where some are by number, others by time, and tuples come at no known rate.

    At the same moment, those by number are the first.
    """
    numbered = [event.after is not None for event in events]
    if rate is None and any(numbered) and not all(numbered):
        return []
    return sorted(events, key=lambda event: (_moment(event, rate or 1.0), event.after is None))


def _moment(event: Event, rate: float) -> float:
    return event.time if event.time is not None else (event.after or 0) / rate
