"""The cost report: forecasts against what happens, and the rules of its advice."""

import json

import numpy as np
import pytest

from unskew.report import CostFacts, CostLots, cost_report_on
from unskew.report.cost_forecast import forecast_costs, in_turn


def lots_of(costs):
    each = np.asarray(costs, float)
    return CostLots(np.ones(len(each)), each, float(each.max(initial=0.0)))


def facts_of(costs, unknown=0):
    each = np.asarray(costs, float)
    return CostFacts(len(each), unknown, float(np.median(each)) if len(each) else 0.0, 0.0, ())


def report(costs, workers, partitions=None, **options):
    return cost_report_on(lots_of(costs), facts_of(costs), workers, partitions=partitions, **options)


def spread(rows=2000, seed=0):
    """Costs that span three orders of magnitude."""
    return np.exp(np.random.default_rng(seed).uniform(0, np.log(1000), rows))


def test_round_robin_is_forecast_as_it_turns_out():
    costs, workers = spread(), 16
    generator = np.random.default_rng(1)
    happened = []
    for _ in range(200):
        parts = generator.permutation(costs).reshape(workers, -1).sum(axis=1)
        happened.append(parts.max())
    (found,) = [f for f in forecast_costs(lots_of(costs), workers, None) if f.way == "round robin"]
    assert found.busiest == pytest.approx(np.mean(happened), rel=0.05)


def test_rows_that_are_known_in_lots_are_forecast_as_one_by_one():
    costs, workers = np.random.default_rng(2).exponential(1.0, 64_000), 8
    parts = costs.reshape(-1, 4)
    grouped = CostLots(np.full(len(parts), 4.0), parts.sum(axis=1), float(costs.max()))
    by_lot = {f.way: f.over_bound for f in forecast_costs(grouped, workers, None)}
    by_row = {f.way: f.over_bound for f in forecast_costs(lots_of(costs), workers, None)}
    assert by_lot["round robin"] == pytest.approx(by_row["round robin"], abs=0.01)
    assert by_lot["balanced"] == pytest.approx(1.0, abs=0.001)


def test_free_workers_take_the_next_task():
    assert in_turn(np.array([3.0, 1.0, 1.0, 1.0, 2.0]), 2) == 5.0


def test_no_way_is_better_than_the_bound():
    for f in report(spread(), 300).forecasts:
        assert f.over_bound >= 1


ADVICE = {
    "no rows": ([], 4, None, "Do nothing: there are no rows."),
    "one worker": ([1.0, 5.0], 1, None, "Do nothing: with one worker there is nothing to balance."),
    "few rows": ([1.0, 5.0], 4, None, "Do nothing, or use fewer workers: 2 rows leave most of 4 idle."),
    "no costs": ([0.0] * 10, 4, None, "Do nothing: the rows cost nothing."),
    "even already": ([1.0] * 1000, 4, [250.0] * 4, "Do nothing: the partitions are even as they are; "),
    "round robin": ([1.0] * 1000, 4, [1000.0], "Use plain df.repartition(4): the busiest worker has 1.00 times"),
    "small tasks": (spread(100_000)[:8000], 16, None, "Use plain df.repartition("),
    "balanced": ([50.0] * 8 + [1.0] * 100, 8, None, "Use map_balanced: the busiest worker has 1.01 times"),
}


@pytest.mark.parametrize("case", ADVICE)
def test_the_advice_follows_its_rules(case):
    costs, workers, partitions, sentence = ADVICE[case]
    found = report(costs, workers, None if partitions is None else np.array(partitions))
    assert found.recommendation.startswith(sentence)
    assert ("map_balanced" in found.code) == (case == "balanced")
    if found.code:
        assert found.best.way in ("round robin", "small tasks", "balanced")


def test_a_row_that_is_more_than_a_workers_share_is_remarked_on():
    found = report([1000.0] + [1.0] * 100, 4)
    assert "The most expensive row alone is 3.6 times the mean of a worker" in found.notes[0]
    assert min(f.over_bound for f in found.forecasts) == 1.0


def test_unknown_costs_and_samples_are_remarked_on():
    costs = [1.0] * 100
    found = cost_report_on(lots_of(costs), facts_of(costs, unknown=7), 4, sampled=50, unit="s")
    assert [note.split(" ")[0] for note in found.notes] == ["7", "From"]


def test_it_prints_and_goes_to_json():
    costs = [50.0] * 8 + [1.0] * 100
    facts = CostFacts(108, 0, 1.0, 50.0, (("[bold] is no markup", 50.0),))
    found = cost_report_on(lots_of(costs), facts, 8, unit="s", call="map_balanced(df, f, s, {workers}, cost='c')")
    text = str(found)
    assert "[bold] is no markup" in text
    assert "map_balanced(df, f, s, 8, cost='c')" in text
    assert "50 s" in text
    assert "<pre" in found._repr_html_()
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["rows"] == 108
    assert plain["forecasts"][0]["way"] == "balanced"
    assert plain["top"] == [{"row": "[bold] is no markup", "cost": 50.0}]
