"""Sources, routers, workers with or without queues, and what is measured on the way."""

from unskew.simulate.estimation import Estimation, parse_estimation
from unskew.simulate.events import Event, parse_event
from unskew.simulate.load import Sample
from unskew.simulate.messaging import Delivery
from unskew.simulate.queue_metrics import QueueSample
from unskew.simulate.queues import Queues
from unskew.simulate.result import Result
from unskew.simulate.simulator import FEEDS, count_keys, simulate

__all__ = [
    "FEEDS",
    "Delivery",
    "Estimation",
    "Event",
    "QueueSample",
    "Queues",
    "Result",
    "Sample",
    "count_keys",
    "parse_estimation",
    "parse_event",
    "simulate",
]
