"""All schemes, one file each. Importing this package registers them."""

from unskew.schemes.bounded import BoundedLoads
from unskew.schemes.cg import ConsistentGrouping
from unskew.schemes.d_choices import DChoices
from unskew.schemes.fanout import Fanout
from unskew.schemes.fish import Fish
from unskew.schemes.hash import Hash
from unskew.schemes.off_greedy import OffGreedy
from unskew.schemes.on_greedy import OnGreedy
from unskew.schemes.pkg import PartialKey
from unskew.schemes.porc import RandomChoices
from unskew.schemes.potc import StaticPotc
from unskew.schemes.random_two import RandomTwo
from unskew.schemes.shuffle import Shuffle
from unskew.schemes.w_choices import WChoices

__all__ = [
    "BoundedLoads",
    "ConsistentGrouping",
    "DChoices",
    "Fanout",
    "Fish",
    "Hash",
    "OffGreedy",
    "OnGreedy",
    "PartialKey",
    "RandomChoices",
    "RandomTwo",
    "Shuffle",
    "StaticPotc",
    "WChoices",
]
