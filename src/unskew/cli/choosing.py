"""From options to schemes (`--scheme`, `--workers`, `--param`) and to queues (`--rate`, `--capacity` and others)."""

from collections.abc import Callable, Sequence

from unskew.calls import parse_assignment, parse_call
from unskew.checks import require_integer
from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.registry import SCHEMES, Registration, lookup, make
from unskew.simulate import Keys, Queues


def make_schemes(
    texts: Sequence[str], workers: int, params: Sequence[str], count_keys: Callable[[], Keys]
) -> list[Scheme]:
    """The schemes that `texts` name, such as ``pkg`` or ``pkg(choices=3)``.

    Each of `params` goes to every scheme that has such a parameter. `count_keys` is called once if a scheme is offline.
    """
    shared = dict(parse_assignment(text) for text in params)
    chosen = [(*_read(text), text) for text in texts]
    for name in shared:
        if not any(name in entry.parameters for entry, _, _ in chosen):
            allowed = sorted({parameter for entry, _, _ in chosen for parameter in entry.parameters})
            raise InputError(f"param: no chosen scheme has {name!r}; allowed are {', '.join(allowed) or 'none'}")
    keys: Keys | None = None
    schemes = []
    for entry, own, text in chosen:
        if entry.offline:
            if own:
                raise InputError(f"scheme: {text!r}: {entry.name} has no parameters")
            keys = keys or count_keys()
            schemes.append(entry.type.fit(workers, keys.ids, keys.counts))
        else:
            fitting = {name: value for name, value in shared.items() if name in entry.parameters}
            schemes.append(make(entry.name, workers, **(fitting | own)))
    return schemes


def _read(text: str) -> tuple[Registration, dict[str, object]]:
    call = parse_call(text)
    if call is None or call.positional:
        allowed = ", ".join(sorted(SCHEMES))
        raise InputError(f"scheme: must be a name or NAME(parameter=value), not {text!r}; allowed names are {allowed}")
    if "workers" in call.named:
        raise InputError(f"scheme: {text!r}: the number of workers is set by --workers")
    return lookup(call.name), call.named


def make_queues(
    capacity: str, rate: float | None, utilisation: float | None, bound: int | None, feedback_delay: float | None
) -> Queues | None:
    """The queues that the options ask for; None where they ask for none."""
    if not capacity and rate is None and utilisation is None and bound is None:
        if feedback_delay is not None:
            raise InputError("feedback-delay: needs queues; add --utilisation, --rate or --capacity")
        return None
    if bound is not None:
        require_integer("queue-bound", bound, 1, what="a whole number of tuples")
    return Queues(rate, utilisation, capacity or 1.0, bound, feedback_delay or 0.0)
