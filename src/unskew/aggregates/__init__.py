"""Aggregates that can be computed in parts: zero, add a batch, merge, finish. See `Aggregate` to write your own."""

from unskew.aggregates.aggregate import Aggregate, ColumnAggregate
from unskew.aggregates.columns import Count, Max, Mean, Min, Sum
from unskew.aggregates.sketches import DistinctCount, Quantiles
from unskew.aggregates.top_k import TopK
from unskew.aggregates.variance import StdDev, Variance

__all__ = [
    "Aggregate",
    "ColumnAggregate",
    "Count",
    "DistinctCount",
    "Max",
    "Mean",
    "Min",
    "Quantiles",
    "StdDev",
    "Sum",
    "TopK",
    "Variance",
]
