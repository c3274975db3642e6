"""Lots: rows that are dealt together. A row's lot is a native column, and depends on the row alone.

A row's lot comes from the low bits of its turn (see `dealing`), a hash of its content. Lots that are too large are
split into finer ones: by more bits of the content, or, where the rows are equal, by the hash of their position.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that every Spark user knows)

FEWEST_BITS = 14  # 16,384 lots: a worker of 64 then gets 256, whose sizes even out
LOTS_PER_WORKER = 16
WIDTH = 3  # bytes of a packed number


class Split(NamedTuple):
    """A lot that is split."""

    lot: int
    parts: int
    by_position: bool


@dataclass(frozen=True)
class Lots:
    """The lots of a DataFrame: `whole` ones, numbered from 0, then the parts of those that are split."""

    bits: int
    splits: tuple[Split, ...] = ()  # those by content first

    @classmethod
    def fresh(cls, workers: int) -> "Lots":
        """Enough lots for so many workers, none of them split."""
        return cls(max(FEWEST_BITS, (LOTS_PER_WORKER * workers - 1).bit_length()))

    @property
    def whole(self) -> int:
        return 1 << self.bits

    @property
    def number(self) -> int:
        """All lots, those included that are empty because they are split."""
        return self.whole + sum(split.parts for split in self.splits)

    @property
    def by_position(self) -> bool:
        """Whether any row is dealt by its position."""
        return any(split.by_position for split in self.splits)

    def parts_of(self, split: Split) -> range:
        """The numbers of the parts of a lot."""
        before = self.splits[: self.splits.index(split)]
        start = self.whole + sum(each.parts for each in before)
        return range(start, start + split.parts)

    def column(self, turn: Column, position: Column) -> Column:
        """The number of the lot of each row, from the turns by content and by position, ints from 0 on."""
        lot = turn.bitwiseAND(F.lit(self.whole - 1))
        if not self.splits:
            return lot
        which, starts = [0] * self.whole, [0]  # 0: not split
        for number, split in enumerate(self.splits, start=1):
            which[split.lot] = number
            starts.append(self.parts_of(split).start)
        split_number = packed_at(which, lot)
        by_content = sum(not split.by_position for split in self.splits)
        finer = F.shiftright(turn, self.bits)
        if self.by_position:
            finer = F.when(split_number <= by_content, finer).otherwise(position)
        part = finer % packed_at([1, *(split.parts for split in self.splits)], split_number)
        return F.when(split_number == 0, lot).otherwise(packed_at(starts, split_number) + part)


def packed_at(values: Sequence[int], index: Column) -> Column:
    """``values[index]`` of numbers from 0 to 2^24 - 1, which travel as one binary constant.

    An array would have to be an expression, which Spark evaluates once for each row of a local table before it folds
    constants: a second for a thousand rows and 16,384 numbers.
    """
    packed = np.asarray(values, ">u4").view(np.uint8).reshape(-1, 4)[:, 4 - WIDTH :].tobytes()
    found = F.substring(F.lit(packed), index * F.lit(WIDTH) + F.lit(1), F.lit(WIDTH))
    return F.conv(F.hex(found), 16, 10).cast("int")
