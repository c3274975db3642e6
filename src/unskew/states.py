"""States as data: the arrays of a state by name, checked before kernels see them, and as bytes without pickle.

A state is a NamedTuple of arrays, or of other such NamedTuples (a sketch, a ring). The array ``counts`` of a state's
``sketch`` is called ``sketch.counts`` here.
"""

import io
import zipfile
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from unskew.contract import Growing, Scheme, SelfChecking, can
from unskew.errors import InputError

Array = npt.NDArray[Any]
UNREADABLE = (
    EOFError,
    KeyError,
    MemoryError,
    OSError,
    RuntimeError,  # a file in the archive that claims to be encrypted, or packed in a way that is not known
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def arrays_of(state: Any) -> dict[str, Array]:
    """The arrays of a state by name, those inside its parts included."""
    found: dict[str, Array] = {}
    for field, value in zip(state._fields, state, strict=True):
        if hasattr(value, "_fields"):
            found |= {f"{field}.{name}": array for name, array in arrays_of(value).items()}
        else:
            found[field] = value
    return found


def with_arrays(state: Any, arrays: dict[str, Array], prefix: str = "") -> Any:
    """A state of the same type and parts as `state`, with these arrays by name."""
    values = (
        with_arrays(value, arrays, f"{prefix}{field}.") if hasattr(value, "_fields") else arrays[prefix + field]
        for field, value in zip(state._fields, state, strict=True)
    )
    return type(state)(*values)


def copied(state: Any) -> Any:
    """A copy that shares no memory with `state`, which may also be a part of one."""
    return with_arrays(state, {name: array.copy() for name, array in arrays_of(state).items()})


def check_state(scheme: Scheme, state: Any) -> None:
    """InputError unless `state` fits the scheme: kernels trust its arrays with their memory."""
    fresh = scheme.new_state()
    expected = arrays_of(fresh)
    if not _has_fields(state, fresh):
        raise InputError(f"data: the state must have the arrays {', '.join(expected)}, not those of {state!r:.80}")
    for name, array in arrays_of(state).items():
        if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
            raise InputError(f"data: {name} must be a C-contiguous array, not {type(array).__name__}")
        wanted = expected[name]
        if array.dtype != wanted.dtype or (array.shape != wanted.shape and not can(scheme, Growing)):
            raise InputError(
                f"data: {name} must be {wanted.dtype}{wanted.shape} for this scheme, not {array.dtype}{array.shape}"
            )
    if can(scheme, SelfChecking):
        scheme.check_state(state)  # type: ignore[attr-defined]


def _has_fields(state: Any, fresh: Any) -> bool:
    """Whether `state` has the fields of `fresh`, and so have its parts."""
    if getattr(state, "_fields", None) != fresh._fields:
        return False
    parts = ((own, wanted) for own, wanted in zip(state, fresh, strict=True) if hasattr(wanted, "_fields"))
    return all(_has_fields(own, wanted) for own, wanted in parts)


def to_bytes(state: Any) -> bytes:
    """The npz of the state's arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays_of(state))  # type: ignore[arg-type]
    return buffer.getvalue()


def from_bytes(scheme: Scheme, data: bytes) -> Any:
    """The state that `to_bytes` wrote, for the same scheme; its arrays are not checked yet."""
    loaded = read_arrays(data, "Router.to_bytes")
    scheme.check()
    fresh = scheme.new_state()
    expected = arrays_of(fresh)
    if set(loaded) != set(expected):
        raise InputError(f"data: must have the arrays {sorted(expected)} of the scheme's state, not {sorted(loaded)}")
    return with_arrays(fresh, loaded)


def read_arrays(data: bytes, writer: str) -> dict[str, Array]:
    """The arrays that `writer` wrote by `to_bytes`, by name."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return {name: np.ascontiguousarray(stored[name]) for name in stored.files}
    except UNREADABLE:
        raise InputError(f"data: must be what {writer} wrote") from None
