"""`Route`: what was asked for in `repartition`, `add_salt`, `aggregate` or `apply_split`, checked and carried out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from unskew.checks import require_workers
from unskew.contract import Scheme
from unskew.errors import InputError, InputTypeError
from unskew.partitioning import ALGORITHMS
from unskew.partitioning.function import PLANNER
from unskew.plan import Plan, require_sample
from unskew.planning import check_plannable
from unskew.registry import Registration, lookup, make, registration_of
from unskew.spark.anchors import repartition_at_anchors
from unskew.spark.dealing import Dealing, by_position, dealing
from unskew.spark.evenness import MOST_EXCESS, looks_uneven, measure_max_over_mean
from unskew.spark.feedback import Feedback
from unskew.spark.frames import as_compared, column, free_name, require_batch, require_frame, warn
from unskew.spark.keys import key_columns, key_id, key_names
from unskew.spark.mapping import Batches, CountingWork, map_in_arrow
from unskew.spark.online import with_online_salt
from unskew.spark.plan_column import salt_of, with_joined_salt
from unskew.spark.planning import name_and_parameters, plan_for, require_plan_of, require_same_workers
from unskew.spark.retries import warn_without_retry_net
from unskew.spark.streaming.adaptive import (
    Adaptive,
    AdaptiveRoute,
    record_online,
    with_adaptive_salt,
    with_salt_to_tell,
)
from unskew.spark.streaming.router_files import RouterFiles

SALT = "__unskew_salt"
DEFAULT_SCHEME = "fanout"
AUTO, PLANNED, ONLINE = MODES = ("auto", "planned", "online")


class Salted(NamedTuple):
    """A DataFrame and the salt of its rows."""

    df: DataFrame
    salt: Column  # an expression, or a column that was added
    added: tuple[str, ...]  # columns that `df` has beside those of the user


@dataclass(frozen=True, eq=False)
class Route:
    """How the rows of a DataFrame get to their workers. See `unskew.spark.repartition` for the fields.

    Bad input is refused when a route is made; jobs run when it is used.
    """

    df: DataFrame
    keys: str | Sequence[str]
    workers: int
    scheme: str | Scheme | Feedback | None
    mode: str
    plan: Plan | Adaptive | None
    deal: str | None
    sample: float | None

    def __post_init__(self) -> None:
        require_frame(self.df)
        require_workers(self.workers)
        key_columns(self.df, self.keys)
        if self.mode not in MODES:
            raise InputError(f"mode: must be one of {', '.join(MODES)}, not {self.mode!r}")
        if isinstance(self.scheme, Feedback):
            self._check_feedback(self.scheme)
        if isinstance(self.plan, Adaptive):
            self._check_adaptive()
        elif self.plan is not None:
            self._check_plan(self.plan)
        if self._online:
            self._check_online()
        else:
            self._check_planned()

    @cached_property
    def columns(self) -> list[Column]:
        """The key columns."""
        return key_columns(self.df, self.keys)

    def on(self, df: DataFrame) -> "Route":
        """The same way for the rows of another DataFrame, which has the same columns and more."""
        return replace(self, df=df)

    def with_salt(self, name: str) -> DataFrame:
        """The DataFrame with the salt as one more column. Counts the keys first where there is no plan."""
        salted = self._add_salt(name)
        df = salted.df if name in salted.added else salted.df.withColumn(name, salted.salt)
        return df.drop(*(added for added in salted.added if added != name))

    def place(self, needed: Sequence[str] | None = None) -> DataFrame:
        """The rows on their workers, with the columns `needed` only. Counts the keys first where there is no plan."""
        name = free_name(self.df, SALT)
        if needed is None:
            salted = self._add_salt(name)
            return self._shuffle(salted.df, salted.salt).drop(*salted.added)
        return self._shuffle(self.with_salt(name).select(*map(column, needed), name), column(name)).drop(name)

    def work(
        self,
        function: Callable[[Batches], Batches],
        schema: StructType | str,
        needed: Sequence[str] | None = None,
        *,
        by_key: bool = False,
    ) -> DataFrame:
        """What workers make of the rows that `place` gives them; those of a batch are sorted by key if asked `by_key`.

        Workers tell a `Feedback` how long they took."""
        placed = self.place(needed)
        if by_key:
            placed = placed.sortWithinPartitions(*self.columns)
        if isinstance(self.scheme, Feedback):
            return self.scheme.time_phase(placed, function, schema)
        return map_in_arrow(placed, function, schema)

    def work_on_stream(
        self, function: CountingWork, schema: StructType | str, needed: Sequence[str] | None = None
    ) -> DataFrame:
        """As `work`, for the rows of a stream. Workers tell `Adaptive` which keys they had."""
        if not isinstance(self.plan, Adaptive) or self._online:
            return self.work(function, schema, needed)
        salt = free_name(self.df, SALT)
        tallied = with_salt_to_tell(self._dealing.df, self._adaptive_route(salt), self.plan)
        salted = tallied.df if needed is None else tallied.df.select(*map(column, needed), salt)
        placed = self._shuffle(salted, column(salt)).drop(salt, *self._dealing.added)
        return tallied.work(placed, function, schema)

    def _adaptive_route(self, salt: str) -> AdaptiveRoute:
        if self._dealing.by_position:
            warn_without_retry_net(self.df.sparkSession)
        return AdaptiveRoute(key_names(self.keys), self.workers, self._scheme, self._dealing.turn, salt)

    def _shuffle(self, df: DataFrame, salt: Column) -> DataFrame:
        if isinstance(self.scheme, Feedback) and self.scheme.anchored:
            return repartition_at_anchors(df, self.workers, *self.columns, salt)
        return df.repartition(self.workers, *self.columns, salt)

    def _add_salt(self, name: str) -> Salted:
        if self._online:
            warn_without_retry_net(self.df.sparkSession)
            start = self.scheme.router.to_bytes() if isinstance(self.scheme, Feedback) else None
            files = self._router_files()
            salted = with_online_salt(self.df, key_id(*self.columns), self._live_scheme, name, start, files)
            if isinstance(self.plan, Adaptive):
                names = key_names(self.keys)
                salted = record_online(salted, names, self.workers, self._registration.name, self.plan, column(name))
            return Salted(salted, column(name), (name,))
        if isinstance(self.plan, Adaptive):
            return self._deal_adaptively(self.plan, name)
        if self.plan is not None:
            return self._deal_safely(self._dealing, self.plan, name)
        plan = plan_for(self.df, self.keys, self.workers, self._scheme, sample=self.sample, names=False)
        return self._deal_evenly(plan, name)

    def _router_files(self) -> RouterFiles | None:
        """Where live routers go on from one micro-batch to the next; None where they do not."""
        if not isinstance(self.plan, Adaptive):
            return None
        place = self.plan.folder().root, self.plan.name
        return self.scheme.router_files(*place) if isinstance(self.scheme, Feedback) else RouterFiles(*place)

    def _deal_safely(self, dealt: Dealing, plan: Plan, name: str) -> Salted:
        """The salts of a plan, without any job; a warning where a retry of a task could change them."""
        if plan.hot_keys and dealt.by_position:
            warn_without_retry_net(self.df.sparkSession)
        return self._deal(dealt, plan, name)

    def _deal(self, dealt: Dealing, plan: Plan, name: str) -> Salted:
        value = salt_of(self.columns, dealt.turn, plan)
        if value is not None:
            return Salted(dealt.df, value, dealt.added)
        joined = with_joined_salt(dealt.df, self.columns, dealt.turn, plan, name)
        return Salted(joined, column(name), (*dealt.added, name))

    def _deal_adaptively(self, adaptive: Adaptive, name: str) -> Salted:
        """The salts of a plan that changes from one micro-batch to the next. No job runs now."""
        salted = with_adaptive_salt(self._dealing.df, self._adaptive_route(name), adaptive)
        return Salted(salted, column(name), (*self._dealing.added, name))

    def _deal_evenly(self, plan: Plan, name: str) -> Salted:
        """The same, by position where by content it is not even; a warning where the user wants it by content."""
        as_asked = self._deal_safely(self._dealing, plan, name)
        if self._dealing.by_position or not looks_uneven(self.columns, plan, self._dealing):
            return as_asked
        in_turn = self._deal(by_position(self.df), plan, name)
        load, even = (
            measure_max_over_mean(each.df, self.columns, each.salt, self.workers) for each in (as_asked, in_turn)
        )
        if load <= MOST_EXCESS * even:
            return as_asked
        if self.deal is None:
            warn_without_retry_net(self.df.sparkSession)
            return in_turn
        warn(
            f"deal: by {self.deal} the busiest worker gets {load:.2f} times the mean, by position {even:.2f}: many "
            "rows of hot keys are equal in what they are dealt by, and stay together; use deal='position', or name a "
            "column that differs more"
        )
        return as_asked

    @cached_property
    def _dealing(self) -> Dealing:
        return dealing(self.df, key_names(self.keys), self.deal)

    @cached_property
    def _scheme(self) -> str | Scheme:
        if isinstance(self.scheme, Feedback):
            return self.scheme.router.scheme
        return DEFAULT_SCHEME if self.scheme is None else self.scheme

    @property
    def _live_scheme(self) -> Scheme:
        return make(self._scheme, self.workers) if isinstance(self._scheme, str) else self._scheme

    @cached_property
    def _registration(self) -> Registration:
        return lookup(self._scheme) if isinstance(self._scheme, str) else registration_of(self._scheme)

    @property
    def _planner(self) -> str:
        """The name that a plan of the scheme has."""
        return PLANNER if self._scheme in ALGORITHMS else self._registration.name

    @cached_property
    def _online(self) -> bool:
        if isinstance(self.plan, Plan):
            return False
        if isinstance(self.scheme, Feedback):
            return True
        if self._scheme in ALGORITHMS:
            if self.mode == ONLINE:
                raise InputError(f"mode: {self._scheme} can be planned, not 'online'")
            return False
        registration = self._registration
        fitted = registration.offline and not isinstance(self._scheme, str)  # has its table
        able = (ONLINE,) if fitted else registration.modes
        if not able:
            make(registration.name, 1)  # says that an offline scheme must be made with fit
        if self.mode != AUTO and self.mode not in able:
            raise InputError(f"mode: {registration.name} can be {' or '.join(able)}, not {self.mode!r}")
        return (able[0] if self.mode == AUTO else self.mode) == ONLINE

    def _check_feedback(self, feedback: Feedback) -> None:
        if self.mode == PLANNED or isinstance(self.plan, Plan):
            raise InputError("mode: what workers tell is for live routers, so it must be 'online', without a plan")
        if self.df.isStreaming and self.plan is None:
            raise InputError("plan: must be Adaptive(the query's checkpointLocation) for a Feedback on a stream")
        if self.df.isStreaming and feedback.anchored:
            raise InputError("anchored: must be False on a stream, whose partitions Spark places anew in each batch")

    def _check_adaptive(self) -> None:
        if not self.df.isStreaming:
            raise InputError("plan: Adaptive is for streams; leave it out for a batch, whose keys are counted first")
        if self.sample is not None:
            raise InputError("sample: must be left out with Adaptive, which counts all rows on the way")

    def _check_plan(self, plan: Plan) -> None:
        if not isinstance(plan, Plan):
            raise InputTypeError(
                "plan: must be a Plan, such as Plan.load('plan.json'), or for a stream Adaptive(checkpoint), not "
                f"{plan.__name__ if isinstance(plan, type) else type(plan).__name__}"
            )
        if self.mode == ONLINE:
            raise InputError("mode: a plan is given, so it must be 'auto' or 'planned', not 'online'")
        require_same_workers("plan", plan.workers, self.workers)
        if self.scheme is not None and self._planner != plan.scheme:
            raise InputError(f"scheme: must be the plan's own {plan.scheme}, or left out, not {self._planner}")
        if self.sample is not None:
            raise InputError("sample: must be left out where a plan is given, since nothing is counted then")
        require_plan_of(self.df, self.keys, plan)

    def _check_online(self) -> None:
        if self.deal is not None or self.sample is not None:
            raise InputError("deal: deal and sample are for mode 'planned', and this is mode 'online'")
        require_same_workers("scheme", self._live_scheme.workers, self.workers)
        self._live_scheme.check()

    def _check_planned(self) -> None:
        if not isinstance(self.plan, Plan):
            if self.plan is None:
                require_batch(self.df)
            name, parameters = name_and_parameters(self._scheme)
            if not isinstance(self._scheme, str):
                require_same_workers("scheme", self._scheme.workers, self.workers)
            check_plannable(name, self.workers, **parameters)
            require_sample(self.sample)
        _ = self._dealing  # InputError where the rows cannot be dealt so


def require_new_column(df: DataFrame, name: str) -> None:
    """InputError unless `name` can be the name of one more column."""
    require_frame(df)
    taken, (new,) = as_compared(df.sparkSession, df.columns), as_compared(df.sparkSession, [str(name)])
    if not isinstance(name, str) or not name or new in taken:
        raise InputError(f"salt: must be the name of a new column, not {name!r}; taken are {', '.join(df.columns)}")
