"""From options to schemes (`--scheme`, `--workers`, `--param`) and to queues (`--rate`, `--capacity` and others)."""

from collections.abc import Callable, Sequence

from unskew.calls import parse_assignment, parse_call
from unskew.checks import require_integer
from unskew.contract import Scheme
from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.registry import SCHEMES, Registration, lookup, make
from unskew.simulate import Queues


def make_schemes(
    texts: Sequence[str], workers: int, params: Sequence[str], count_keys: Callable[[], Frequencies]
) -> list[Scheme]:
    """The schemes that `texts` name, such as ``pkg`` or ``pkg(choices=3)``.

    Each of `params` goes to every scheme that has such a parameter and does not set it itself. `count_keys` is called
    once if a scheme is offline.
    """
    shared = _read_params(params)
    chosen = [(*_read(text), text) for text in texts]
    for name in shared:
        having = [(own, text) for registered, own, text in chosen if name in registered.parameters]
        if not having:
            allowed = sorted({parameter for registered, _, _ in chosen for parameter in registered.parameters})
            raise InputError(f"param: no chosen scheme has {name!r}; allowed are {', '.join(allowed) or 'none'}")
        if all(name in own for own, _ in having):
            set_already = f"{having[0][1]!r} sets {name!r} itself"
            raise InputError(
                f"param: {name}={shared[name]!r} would have no effect: {set_already}; leave one of them out"
            )
    counted: Frequencies | None = None
    schemes = []
    for registered, own, text in chosen:
        if registered.offline:
            if own:
                raise InputError(f"scheme: {text!r}: {registered.name} has no parameters")
            counted = counted or count_keys()
            schemes.append(registered.type.fit(workers, counted.key_ids, counted.counts))
        else:
            fitting = {name: value for name, value in shared.items() if name in registered.parameters}
            schemes.append(make(registered.name, workers, **(fitting | own)))
    return schemes


def _read_params(texts: Sequence[str]) -> dict[str, object]:
    params: dict[str, object] = {}
    for name, value in map(parse_assignment, texts):
        if name in params:
            raise InputError(f"param: {name!r} is set twice, to {params[name]!r} and to {value!r}; set it once")
        params[name] = value
    return params


def _read(text: str) -> tuple[Registration, dict[str, object]]:
    call = parse_call(text)
    if call is None or call.positional:
        allowed = ", ".join(sorted(SCHEMES))
        raise InputError(f"scheme: must be a name or NAME(parameter=value), not {text!r}; allowed names are {allowed}")
    if "workers" in call.named:
        raise InputError(f"scheme: {text!r}: the number of workers is set by --workers")
    return lookup(call.name), call.named


def make_queues(
    capacities: Sequence[str],
    rate: float | None,
    utilisation: float | None,
    bound: int | None,
    feedback_delay: float | None,
    migration: float | None,
) -> Queues | None:
    """The queues that the options ask for; None where they ask for none. `--capacity` may be given once."""
    if len(capacities) > 1:
        each = "name workers in one, such as --capacity 0-2:5,7:3"
        raise InputError(f"capacity: may be given only once, not {len(capacities)} times; {each}")
    if not capacities and rate is None and utilisation is None and bound is None:
        if feedback_delay is not None:
            raise InputError("feedback-delay: needs queues; add --utilisation, --rate or --capacity")
        if migration is not None:
            raise InputError("migration: needs queues; add --utilisation, --rate or --capacity")
        return None
    if bound is not None:
        require_integer("queue-bound", bound, 1, what="a whole number of tuples")
    capacity = capacities[0] if capacities else 1.0
    return Queues(rate, utilisation, capacity, bound, feedback_delay or 0.0, migration or 0.0)
