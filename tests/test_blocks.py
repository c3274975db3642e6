"""The smallest of numbers that change as they like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew import FullKnowledge, InputError, Router
from unskew.least import check_blocks, look_anew, new_blocks, smallest_of, update_block

NUMBERS = st.sampled_from([-1.5, 0.0, 0.5, 1.0, 1e300])


@given(
    numbers=st.lists(NUMBERS, min_size=1, max_size=40),
    changes=st.lists(st.tuples(st.integers(0, 39), NUMBERS), max_size=30),
)
def test_the_smallest_is_found_whatever_changes_and_the_first_of_equals(numbers, changes):
    values = np.array(numbers)
    blocks = new_blocks(values)
    assert smallest_of(blocks) == values.argmin()
    for position, number in changes:
        values[position % len(values)] = number
        update_block(blocks, values, position % len(values))
        assert smallest_of(blocks) == values.argmin()
    values[:] = -values
    look_anew(blocks, values)
    assert smallest_of(blocks) == values.argmin()
    check_blocks("least", blocks, values)


@pytest.mark.parametrize("field", ["size", "where", "smallest"])
def test_blocks_of_other_numbers_are_refused(field):
    scheme = FullKnowledge(20)
    state = scheme.new_state()
    getattr(state.least, field)[-1] += 1
    with pytest.raises(InputError, match=rf"^least.{field}: must be "):
        Router(scheme, state)
