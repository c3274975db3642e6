"""The smallest of many numbers, the lowest position of equals first.

`Least` is for numbers that only grow, by steps of at least 1: it finds the smallest in constant time on average. After
one scan finds the smallest number m, a queue of all positions whose number is under m + 1, in the order of (number,
position), stays right by itself: whatever has grown since is at least m + 1, beyond everything in the queue, and is
skipped. When the queue is used up it is made anew, and the smallest is then at least m + 1. With numbers that sum to N,
n of them, that happens at most N/n + 1 times: N + n steps in all. Whole numbers need no sorting (all in a queue are
equal); others do, a logarithm more.

`Blocks` is for numbers that change as they like, one at a time: n of them are cut into blocks of about sqrt(n), the
smallest of each block is kept, and a change looks at one block. Finding the smallest looks at one number per block.
"""

from math import isqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unskew.errors import InputError
from unskew.kernels import allocating_kernel, inlined, kernel


class Least(NamedTuple):
    waiting: npt.NDArray[np.int64]  # [n] positions in the order of (number, position); those used up come first
    span: npt.NDArray[np.int64]  # [2] the next of them, and the end of the queue
    beyond: npt.NDArray[np.float64]  # [1] m + 1: what has grown since is not under it


def new_least(numbers: int) -> Least:
    """An empty queue for so many numbers: made when it is first asked."""
    return Least(np.zeros(numbers, np.int64), np.zeros(2, np.int64), np.zeros(1, np.float64))


@kernel
def least(queue, numbers):
    """The position of the smallest of `numbers`, the lowest of equals. It is the next one again unless it grows."""
    while True:
        while queue.span[0] < queue.span[1]:
            position = queue.waiting[queue.span[0]]
            if numbers[position] < queue.beyond[0]:
                return position
            queue.span[0] += 1
        _gather(queue, numbers)


@kernel
def _gather(queue, numbers):
    smallest = numbers[0]
    for number in numbers:
        smallest = min(smallest, number)
    queue.beyond[0] = smallest + 1.0
    end, sorted_so_far = 0, True
    for position in range(len(numbers)):
        if numbers[position] < queue.beyond[0]:
            queue.waiting[end] = position
            sorted_so_far &= end == 0 or numbers[queue.waiting[end - 1]] <= numbers[position]
            end += 1
    queue.span[0], queue.span[1] = 0, end
    if not sorted_so_far:
        sort_positions(queue.waiting[:end], numbers)


@allocating_kernel
def sort_positions(positions, numbers):
    """Merge sort of ascending positions by their numbers: equals stay in order. (Numba's own compiles for seconds.)"""
    merged = np.empty(len(positions), np.int64)
    width = 1
    while width < len(positions):
        for start in range(0, len(positions), 2 * width):
            middle, end = min(start + width, len(positions)), min(start + 2 * width, len(positions))
            left, right = start, middle
            for place in range(start, end):
                if right == end or (left < middle and numbers[positions[left]] <= numbers[positions[right]]):
                    merged[place] = positions[left]
                    left += 1
                else:
                    merged[place] = positions[right]
                    right += 1
        for place in range(len(positions)):
            positions[place] = merged[place]
        width *= 2


@kernel
def scale(queue, numbers, factor):
    """Multiply all numbers by `factor`, at most 1: the queue stays right.

    The order stays too, but rounding may make numbers equal that were not: then the position decides.
    """
    for position in range(len(numbers)):
        numbers[position] *= factor
    queue.beyond[0] *= factor
    begin, end = queue.span[0], queue.span[0]
    for i in range(queue.span[0], queue.span[1]):
        position = queue.waiting[i]
        if numbers[position] < queue.beyond[0]:
            place = end
            while place > begin and _later(numbers, queue.waiting[place - 1], position):
                queue.waiting[place] = queue.waiting[place - 1]
                place -= 1
            queue.waiting[place] = position
            end += 1
    queue.span[1] = end


@kernel
def _later(numbers, one, other):
    return numbers[one] > numbers[other] or (numbers[one] == numbers[other] and one > other)


def check_least(name: str, queue: Least) -> None:
    """InputError unless the queue stays within its arrays: kernels rely on it for their memory."""
    begin, end = queue.span.tolist()
    positions = len(queue.waiting)
    if not 0 <= begin <= end <= positions:
        raise InputError(f"{name}.span: must be two numbers in order, from 0 to {positions}, not {[begin, end]}")
    outside = queue.waiting[(queue.waiting < 0) | (queue.waiting >= positions)]
    if len(outside):
        raise InputError(f"{name}.waiting: must be positions from 0 to {positions - 1}, not {outside[0]}")
    if not np.isfinite(queue.beyond[0]):
        raise InputError(f"{name}.beyond: must be a finite number, not {queue.beyond[0]}")


# ---------------------------------------------------------------- numbers that change as they like


class Blocks(NamedTuple):
    size: npt.NDArray[np.int64]  # [1] numbers per block
    where: npt.NDArray[np.int64]  # [blocks] position of the smallest number of each block, the lowest of equals
    smallest: npt.NDArray[np.float64]  # [blocks] that number


def new_blocks(numbers: npt.NDArray[np.float64]) -> Blocks:
    """The blocks of these numbers, at least one."""
    size = max(1, isqrt(len(numbers)))
    blocks = -(-len(numbers) // size)
    made = Blocks(np.array([size]), np.zeros(blocks, np.int64), np.zeros(blocks))
    look_anew(made, numbers)
    return made


@inlined
def smallest_of(blocks):
    """The position of the smallest of all numbers, the lowest of equals."""
    block, _ = _smallest_in(blocks.smallest)
    return blocks.where[block]


@inlined
def update_block(blocks, numbers, position):
    """Take in that the number at `position` is another now."""
    block = position // blocks.size[0]
    start = block * blocks.size[0]
    place, smallest = _smallest_in(numbers[start : start + blocks.size[0]])
    blocks.where[block], blocks.smallest[block] = start + place, smallest


@inlined
def _smallest_in(numbers):
    place, smallest = 0, numbers[0]
    for other in range(1, len(numbers)):
        if numbers[other] < smallest:
            place, smallest = other, numbers[other]
    return place, smallest


@kernel
def look_anew(blocks, numbers):
    """Take in that any number may be another now."""
    for start in range(0, len(numbers), blocks.size[0]):
        update_block(blocks, numbers, start)


def check_blocks(name: str, blocks: Blocks, numbers: npt.NDArray[np.float64]) -> None:
    """InputError unless the blocks are those of these numbers: kernels rely on it for their memory."""
    fresh = new_blocks(numbers)
    for field, found, wanted in zip(fresh._fields, blocks, fresh, strict=True):
        if not np.array_equal(found, wanted):
            raise InputError(f"{name}.{field}: must be {wanted.tolist()!r:.80}, not {found.tolist()!r:.80}")
