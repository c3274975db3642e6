"""Workers that come and go in a run: who is there after an event; and whether all events can be, known before the run.

A long run should not end at its last event. So events are rehearsed with a throwaway router, in the order in which they
will take place: that of their numbers, that of their times, or both where tuples come at a rate. Where tuples come at
times of their own and events are by number and by time, nobody knows the order beforehand: then only whether the scheme
can follow at all is found out.
"""

from collections.abc import Sequence

import numpy as np

from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.members import Names
from unskew.registry import registration_of
from unskew.router import Router
from unskew.simulate.events import Event

MOST_REHEARSED = 10_000_000  # workers of all changes: beyond it a router is not rehearsed, since a change takes long


def members_after(event: Event, members: Names, next_name: int) -> Names:
    """Who is there after `event`; whoever joins is called `next_name` and so on."""
    if event.what == "add":
        return np.concatenate([members, np.arange(next_name, next_name + event.count)])
    if event.what == "capacity":
        return members
    leaving = np.array(event.workers)
    absent = leaving[~np.isin(leaving, members)]
    if len(absent):
        raise InputError(f"event: {event.brief}: worker {absent[0]} is not there at that time")
    staying = members[~np.isin(members, leaving)]
    if not len(staying):
        raise InputError(f"event: {event.brief} would leave no worker")
    return staying


def tell(routers: Sequence[Router], event: Event, members: Names) -> None:
    """From `event` on there are the workers `members`; the routers are of one scheme."""
    try:
        for router in routers:
            router.workers_changed(members)
    except InputError as error:
        refusal = f"{registration_of(routers[0].scheme).name} cannot go on with {len(members):,} workers: {error}"
        raise InputError(f"event: {event.brief}: {refusal}") from None


def rehearse(scheme: Scheme, events: Sequence[Event], rate: float | None, length: int | None) -> None:
    """InputError where an event cannot be. `rate` and `length` are those of the stream, where they are known."""
    changes = [event for event in events if event.what != "capacity" and not _is_after(event, rate, length)]
    if not changes:
        return
    router, members, next_name = Router(scheme), np.arange(scheme.workers), scheme.workers
    in_order = _in_order(changes, rate)
    if in_order is None:
        tell([router], changes[0], members)
        return
    left = MOST_REHEARSED
    for event in in_order:
        members = members_after(event, members, next_name)
        next_name += event.count if event.what == "add" else 0
        left -= len(members)
        if left >= 0:
            tell([router], event, members)


def _is_after(event: Event, rate: float | None, length: int | None) -> bool:
    """Whether it is known that the stream is over when the event is due."""
    if length is None:
        return False
    if event.after is not None:
        return event.after >= length
    return rate is not None and _moment(event, rate) > (length - 1) / rate


def _in_order(events: Sequence[Event], rate: float | None) -> list[Event] | None:
    """As they take place; None where that is not known. At the same moment, those by number are the first."""
    numbered = [event for event in events if event.after is not None]
    if rate is None and 0 < len(numbered) < len(events):
        return None
    return sorted(events, key=lambda event: (_moment(event, rate), event.after is None))


def _moment(event: Event, rate: float | None) -> float:
    return event.time if event.time is not None else (event.after or 0) / (rate or 1.0)
