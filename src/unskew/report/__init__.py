"""How skewed a stream is, what that costs with W workers, and what to do about it. Needs frequencies, not Spark.

    from unskew.report import KeyCounts, report_on

    print(report_on(KeyCounts.of(key_ids, counts), workers=64))

On Spark, `unskew.spark.skew_report` measures the frequencies; on the command line, ``unskew doctor``.
"""

from unskew.report.advice import PURPOSES, Advice
from unskew.report.cost_forecast import CostForecast, CostLots
from unskew.report.cost_report import CostFacts, CostReport, cost_report_on
from unskew.report.counts import KeyCounts, TopKey, ZipfFit
from unskew.report.forecast import Forecast
from unskew.report.report import Report, report_on

__all__ = [
    "PURPOSES",
    "Advice",
    "CostFacts",
    "CostForecast",
    "CostLots",
    "CostReport",
    "Forecast",
    "KeyCounts",
    "Report",
    "TopKey",
    "ZipfFit",
    "cost_report_on",
    "report_on",
]
