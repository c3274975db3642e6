"""unskew keeps skewed streams balanced: it decides, tuple by tuple, which parallel worker gets which key.

>>> from unskew import PartialKey, Router, key_ids
>>> router = Router(PartialKey(workers=16))
>>> workers = router.route(key_ids(["the", "cat", "the"]))
"""

from unskew import schemes as schemes  # registers all of them
from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.hashing import candidate, salt_for, salts_for
from unskew.key_columns import key_ids
from unskew.plan import Plan
from unskew.planning import make_plan
from unskew.registry import SCHEMES, make, register
from unskew.router import Router
from unskew.schemes.bounded import BoundedLoads
from unskew.schemes.cg import ConsistentGrouping
from unskew.schemes.d_choices import DChoices
from unskew.schemes.fanout import Fanout, follow_plan
from unskew.schemes.fish import Fish
from unskew.schemes.full_knowledge import FullKnowledge
from unskew.schemes.hash import Hash
from unskew.schemes.off_greedy import OffGreedy
from unskew.schemes.on_greedy import OnGreedy
from unskew.schemes.partitioner import Partitioner
from unskew.schemes.pkg import PartialKey
from unskew.schemes.porc import RandomChoices
from unskew.schemes.posg import Posg
from unskew.schemes.potc import StaticPotc
from unskew.schemes.random_two import RandomTwo
from unskew.schemes.shuffle import Shuffle
from unskew.schemes.w_choices import WChoices

__version__ = "0.1.0"
__all__ = [
    "SCHEMES",
    "BoundedLoads",
    "ConsistentGrouping",
    "DChoices",
    "Fanout",
    "Fish",
    "Frequencies",
    "FullKnowledge",
    "Hash",
    "InputError",
    "OffGreedy",
    "OnGreedy",
    "PartialKey",
    "Partitioner",
    "Plan",
    "Posg",
    "RandomChoices",
    "RandomTwo",
    "Router",
    "Scheme",
    "Shuffle",
    "StaticPotc",
    "WChoices",
    "candidate",
    "follow_plan",
    "key_ids",
    "make",
    "make_plan",
    "register",
    "salt_for",
    "salts_for",
]
