"""The loop of one source and its workers, where it is known at once when each tuple will be done.

A worker executes its tuples in order. So if queues have no bound and workers stay as they are, it is known when a tuple
will be done as soon as it is sent: the worker half takes it in right then, and its reply waits until it is heard. One
compiled loop does it all. It stops only for what workers tell unasked, which is a matter of Python.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import literal_unroll

from unskew.kernels import kernel

DONE, HEAR, TELL, FULL, WRONG = range(5)  # why the loop stopped: at the end; to hear; to tell; no room; no such worker
LOOP = """
def loop(scheme, state, states, key_ids, times, chosen, course, told_at, told_by, i):
    replies, finish = course.replies, course.finish
    next_heard = min(told_at, replies.time[0])
    while i < len(key_ids):
        now = course.clock[i]
        while now >= next_heard:
            at, by = replies.time[0], replies.worker[0]
            if told_at < at or (told_at == at and told_by < by):
                return i, HEAR
            if course.heard.number[0] == len(course.heard.time):
                return i, FULL
            note(course.heard, i, at, by)
            hear_reply(scheme, state, by, replies.ticket[0], replies.reply[0])
            take_first(replies)
            next_heard = min(told_at, replies.time[0])
        if replies.number[0] + 1 == len(replies.time):
            return i, FULL
        worker, ticket = choose(scheme, state, key_ids[i], times[i])
        chosen[i] = worker
        if not 0 <= worker < len(finish):
            return i + 1, WRONG
        arrives, free = now - course.start, finish[worker]
        begins = max(arrives, free)
        finish[worker] = begins + course.service[worker] * (course.costs[i] if len(course.costs) else 1.0)
        seconds, waited = finish[worker] - begins, begins - free
        tells, reply = execute(scheme, states, worker, key_ids[i], seconds, waited, 0, ticket)
        if ticket > 0:
            put(replies, moment_of(finish[worker], course.start) + course.delay, worker, ticket, reply)
            next_heard = min(told_at, replies.time[0])
        i += 1
        if tells:
            return i, TELL
    return i, DONE
"""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class WaitingReplies(NamedTuple):
    """Replies that are yet to be heard, as a heap: the one in place i is heard before those in 2i + 1 and 2i + 2."""

    number: Ints  # [2] how many wait; how many have ever been put here
    time: Floats  # [room] when it is heard; infinity behind the last one
    worker: Ints  # [room]
    order: Ints  # [room] number of those put here before: of one worker and one moment, the first is heard first
    ticket: Ints  # [room]
    reply: Floats  # [room]


class Heard(NamedTuple):
    """Replies that were heard, in order."""

    number: Ints  # [1]
    position: Ints  # [room] of the tuple before which it was
    time: Floats  # [room]
    worker: Ints  # [room]


class Course(NamedTuple):
    """What is known of the workers and of the tuples on their way to them."""

    clock: Floats  # [tuples] when each tuple comes
    costs: Floats  # [tuples] none where they have no costs
    service: Floats  # [workers] seconds per unit of cost
    finish: Floats  # [workers] when each will be done with what it has, in seconds from `start` on
    start: float  # when the first tuple of all came
    delay: float  # seconds until a message is heard
    replies: WaitingReplies
    heard: Heard


def new_replies(room: int) -> WaitingReplies:
    """None yet, and room for one less than `room`."""
    worker, order, ticket = np.zeros((3, room), np.int64)
    return WaitingReplies(np.zeros(2, np.int64), np.full(room, np.inf), worker, order, ticket, np.zeros(room))


def with_more_room(replies: WaitingReplies) -> WaitingReplies:
    """The same replies, with twice the room."""
    larger = new_replies(2 * len(replies.time))
    for new, old in zip(larger, replies, strict=True):
        new[: len(old)] = old
    return larger


@kernel
def moment_of(finish, start):
    """When a tuple is done, by the stream's clock: the first moment that is not before `finish` seconds after `start`,
    however it is rounded."""
    moment = start + finish
    return np.nextafter(moment, np.inf) if moment - start < finish else moment


@kernel
def put(replies, time, worker, ticket, reply):
    """One more reply; there must be room for it."""
    place = replies.number[0]
    replies.time[place], replies.worker[place], replies.order[place] = time, worker, replies.number[1]
    replies.ticket[place], replies.reply[place] = ticket, reply
    replies.number[0] += 1
    replies.number[1] += 1
    while place > 0 and _is_before(replies, place, (place - 1) // 2):
        _swap(replies, place, (place - 1) // 2)
        place = (place - 1) // 2


@kernel
def take_first(replies):
    """Remove the reply in place 0."""
    replies.number[0] -= 1
    last, place = replies.number[0], 0
    _swap(replies, 0, last)
    replies.time[last] = np.inf
    while 2 * place + 1 < last:
        child = 2 * place + 1
        if child + 1 < last and _is_before(replies, child + 1, child):
            child += 1
        if not _is_before(replies, child, place):
            return
        _swap(replies, place, child)
        place = child


@kernel
def _is_before(replies, a, b):
    if replies.time[a] != replies.time[b]:
        return replies.time[a] < replies.time[b]
    if replies.worker[a] != replies.worker[b]:
        return replies.worker[a] < replies.worker[b]
    return replies.order[a] < replies.order[b]


@kernel
def _swap(replies, a, b):
    for column in literal_unroll(replies[1:]):
        column[a], column[b] = column[b], column[a]


@kernel
def note(heard, position, time, worker):
    """One more reply that was heard; there must be room for it."""
    place = heard.number[0]
    heard.position[place], heard.time[place], heard.worker[place] = position, time, worker
    heard.number[0] += 1


REASONS = {"DONE": DONE, "HEAR": HEAR, "TELL": TELL, "FULL": FULL, "WRONG": WRONG}
STEPS = {
    "moment_of": moment_of,
    "put": put,
    "take_first": take_first,
    "note": note,
    **REASONS,
}  # what the loop calls and names
