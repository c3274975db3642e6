"""unskew keeps skewed streams balanced: it decides, tuple by tuple, which parallel worker gets which key.

from unskew import PartialKey, Router, key_ids

router = Router(PartialKey(workers=16))
workers = router.route(key_ids(["the", "cat", "the"]))
"""

from unskew.errors import InputError
from unskew.hashing import candidate, key_ids, salt_for, salts_for
from unskew.plan import Frequencies, Plan
from unskew.scheme import SCHEMES, Router, Scheme, make, make_plan, register
from unskew.schemes import Fanout, Hash, OffGreedy, OnGreedy, PartialKey, Shuffle, StaticPotc

__version__ = "0.1.0"
__all__ = [
    "SCHEMES",
    "Fanout",
    "Frequencies",
    "Hash",
    "InputError",
    "OffGreedy",
    "OnGreedy",
    "PartialKey",
    "Plan",
    "Router",
    "Scheme",
    "Shuffle",
    "StaticPotc",
    "candidate",
    "key_ids",
    "make",
    "make_plan",
    "register",
    "salt_for",
    "salts_for",
]
