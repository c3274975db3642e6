"""unskew keeps skewed streams balanced: it decides, tuple by tuple, which parallel worker gets which key.

from unskew import PartialKey, Router, key_ids

router = Router(PartialKey(workers=16))
workers = router.route(key_ids(["the", "cat", "the"]))
"""

from unskew.errors import InputError
from unskew.hashing import candidate, key_ids, salt_for, salts_for
from unskew.scheme import SCHEMES, Router, Scheme, make, register
from unskew.schemes import Hash, OffGreedy, OnGreedy, PartialKey, Shuffle, StaticPotc

__version__ = "0.1.0"
__all__ = [
    "SCHEMES",
    "Hash",
    "InputError",
    "OffGreedy",
    "OnGreedy",
    "PartialKey",
    "Router",
    "Scheme",
    "Shuffle",
    "StaticPotc",
    "candidate",
    "key_ids",
    "make",
    "register",
    "salt_for",
    "salts_for",
]
