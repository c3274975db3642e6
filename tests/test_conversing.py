"""The loop of a source and its workers: replies wait in order, and a scheme's mistakes do no harm."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew import InputError, Posg
from unskew.conversing import new_replies, put, take_first, with_more_room
from unskew.registry import registration_of
from unskew.simulate import Queues, simulate
from unskew.streams import Costed

TIMES = st.sampled_from([0.0, 0.5, 1.0, 7.0])


@given(st.lists(st.one_of(st.none(), st.tuples(TIMES, st.integers(0, 3)))))
def test_replies_leave_by_time_then_by_worker_then_in_the_order_in_which_they_came(steps):
    replies, expected = new_replies(2), []
    for ticket, step in enumerate(steps):
        if step is not None:
            if replies.number[0] + 1 == len(replies.time):
                replies = with_more_room(replies)
            put(replies, *step, ticket, 0.5 * ticket)
            expected.append((*step, ticket, 0.5 * ticket))
        elif expected:
            first = min(expected)
            assert (replies.time[0], replies.worker[0], replies.ticket[0], replies.reply[0]) == first
            take_first(replies)
            expected.remove(first)
        assert replies.number[0] == len(expected)
        assert replies.time[len(expected)] == np.inf


def test_a_worker_that_is_not_there_is_refused(monkeypatch):
    registration = registration_of(Posg(workers=3))

    def converse(scheme, state, states, key_ids, times, chosen, course, told_at, told_by, first):
        chosen[0] = 9
        return 1, 4

    monkeypatch.setitem(registration.__dict__, "conversing_loop", converse)
    with pytest.raises(InputError, match=r"^scheme: posg chose worker 9, not one of 0\.\.2"):
        simulate(Costed(tuples=10), [Posg(workers=3)], queues=Queues(utilisation=0.5))
