"""The two phases of an aggregation as functions of Arrow batches, and the schemas between them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from unskew.aggregates import Aggregate
from unskew.aggregates.states import States, add_all, in_batches, merge_all
from unskew.errors import InputError
from unskew.spark.mapping import Batches, CountingWork, CountKeys, arrow_schema

OURS = "__unskew_"


def refuse_our_names(option: str, names: Iterable[str]) -> None:
    """InputError where a name looks like one of ours."""
    ours = [name for name in names if name.lower().startswith(OURS)]
    if ours:
        raise InputError(
            f"{option}: {ours[0]!r} must be renamed: names that begin with {OURS} are for columns on the way"
        )


@dataclass(frozen=True)
class Phases:
    """Keys, aggregates, and the types of what they make of rows."""

    names: list[str]  # of the key columns
    results: dict[str, Aggregate]  # by the name of their column
    kinds: list[pa.DataType]  # of the results
    partial: StructType  # what phase 1 puts out: the keys and a state per aggregate
    result: StructType  # what phase 2 puts out

    @classmethod
    def of(
        cls, df: DataFrame, names: Sequence[str], needed: Sequence[str], results: Mapping[str, Aggregate]
    ) -> "Phases":
        """Those of an aggregation of `df` by `names`; `needed` are the columns of the keys and of the aggregates."""
        key_fields = [df.schema[name] for name in names]
        rows = arrow_schema(StructType([df.schema[name] for name in needed]))
        kinds = [each.result_type(*(rows.field(name).type for name in each.columns)) for each in results.values()]
        result_fields = [StructField(name, from_arrow_type(kind)) for name, kind in zip(results, kinds, strict=True)]
        trial = States(names, [*results.values()])  # without rows, on the driver: tells the types of the states
        trial.add(rows.empty_table())
        states = [field for field in trial.partials().schema if field.name not in names]
        state_fields = [StructField(field.name, from_arrow_type(field.type)) for field in states]
        partial, result = StructType(key_fields + state_fields), StructType(key_fields + result_fields)
        return cls(list(names), dict(results), kinds, partial, result)

    def add_rows(self) -> CountingWork:
        """Phase 1: rows in, one row per key out, with its states."""
        names, results, schema = self.names, [*self.results.values()], arrow_schema(self.partial)

        def phase_1(batches: Batches, count: CountKeys | None = None) -> Batches:
            states = States(names, results)
            add_all(states, batches)
            if len(states):
                if count is not None:
                    count(states.keys, states.counts)
                yield from in_batches(states.partials(), schema)

        return phase_1

    def merge_and_finish(self) -> Callable[[Batches], Batches]:
        """Phase 2: all that phase 1 put out for some keys in, one row per key out, with its results."""
        names, results, columns, kinds = self.names, [*self.results.values()], list(self.results), self.kinds
        schema = arrow_schema(self.result)

        def phase_2(batches: Batches) -> Batches:
            states = States(names, results)
            merge_all(states, batches)
            if len(states):
                yield from in_batches(states.results(columns, kinds), schema)

        return phase_2
