"""Partitioning functions: keys that must not be split are placed whole, and moved as little as possible.

Paper: B. Gedik, "Partitioning functions for stateful data parallelism in stream processing", VLDB Journal 23(4), 2014.

`function` is p = <H_p, H_c>; `objective` says which loads count; `construction` makes the next function from the
present one, by `greedy` (scan, redist) or `readj`, which minimise what `penalties` computes; `fresh` makes those that
are as level as possible; `metrics` measures; `controller` is the loop that decides when.
"""

from unskew.partitioning.construction import ALGORITHMS, construct
from unskew.partitioning.controller import Adaptation, Controller
from unskew.partitioning.fresh import move_whole, place_whole
from unskew.partitioning.function import PartitionFunction
from unskew.partitioning.metrics import Imbalance, Moves, imbalance, moves, relative_migration
from unskew.partitioning.objective import Objective

__all__ = [
    "ALGORITHMS",
    "Adaptation",
    "Controller",
    "Imbalance",
    "Moves",
    "Objective",
    "PartitionFunction",
    "construct",
    "imbalance",
    "move_whole",
    "moves",
    "place_whole",
    "relative_migration",
]
