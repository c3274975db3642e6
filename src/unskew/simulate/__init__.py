"""Sources, routers, workers with or without queues, and what is measured on the way."""

from unskew.simulate.estimation import Estimation, parse_estimation
from unskew.simulate.events import Event, parse_event
from unskew.simulate.metrics import Keys, Sample
from unskew.simulate.queue_metrics import QueueSample
from unskew.simulate.queues import Queues
from unskew.simulate.result import Result
from unskew.simulate.simulator import FEEDS, frequencies, simulate

__all__ = [
    "FEEDS",
    "Estimation",
    "Event",
    "Keys",
    "QueueSample",
    "Queues",
    "Result",
    "Sample",
    "frequencies",
    "parse_estimation",
    "parse_event",
    "simulate",
]
