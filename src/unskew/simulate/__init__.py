"""Sources, routers, workers and what is measured on the way."""

from unskew.simulate.estimation import Estimation, parse_estimation
from unskew.simulate.metrics import Keys, Sample
from unskew.simulate.result import Result
from unskew.simulate.simulator import FEEDS, frequencies, simulate

__all__ = ["FEEDS", "Estimation", "Keys", "Result", "Sample", "frequencies", "parse_estimation", "simulate"]
