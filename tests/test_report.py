"""The skew report: its numbers against exact ones, its advice case by case, and how it shows itself."""

import json
from io import BytesIO, TextIOWrapper

import numpy as np
import pytest
from rich.console import Console

import naive
from unskew.errors import InputError
from unskew.frequencies import Frequencies
from unskew.hashing import NULL_KEY_ID
from unskew.key_columns import key_ids
from unskew.registry import SCHEMES, make
from unskew.report import KeyCounts, Report, report_on
from unskew.report.costs import duration
from unskew.report.forecast import MOST_WORKERS, TUPLES, WHOLE, miniature
from unskew.simulate import simulate
from unskew.streams import Zipf


def counted(counts: list[int] | np.ndarray) -> KeyCounts:
    counts = np.asarray(counts, np.int64)
    return KeyCounts.of(key_ids(np.arange(len(counts))), counts, [f"k{i}" for i in range(len(counts))])


def zipf(z: float, keys: int, tuples: int) -> KeyCounts:
    shares = np.arange(1, keys + 1) ** -z
    return counted(np.maximum(1, np.round(tuples * shares / shares.sum())))


def forecast(report: Report, scheme: str, mode: str | None = None):
    (found,) = (f for f in report.forecasts if f.scheme == scheme and mode in (None, f.mode))
    return found


# ---------------------------------------------------------------- what was measured


@pytest.mark.parametrize("z", [0.0, 0.5, 1.0, 1.4, 2.0])
def test_the_exponent_of_exact_zipf_counts_is_found(z: float) -> None:
    fit = zipf(z, 10_000, 50_000_000).zipf()
    assert fit is not None
    assert fit.exponent == pytest.approx(z, abs=0.01)
    assert fit.r_squared > 0.999


def test_no_exponent_without_three_keys() -> None:
    assert counted([100, 50]).zipf() is None
    assert counted([100, 9, 8]).zipf() is None  # too few rows to tell


def test_totals_are_exact_however_long_the_tail() -> None:
    counts = zipf(1.0, 50_000, 1_000_000)
    assert counts.keys == 50_000
    assert counts.tuples == counts.top.counts.sum() + counts.tail_tuples.sum()
    rank, share = counts.curve()
    assert rank[0] == 1
    assert rank[-1] == counts.keys
    assert (np.diff(rank) > 0).all()
    assert (np.diff(share) <= 0).all()


def test_counts_that_do_not_add_up_are_refused() -> None:
    top = Frequencies(key_ids(["a"]), np.array([5]), 9)
    with pytest.raises(InputError, match=r"tuples: must be the sum of all counts 8, not 9"):
        KeyCounts(top, np.array([1]), np.array([3]))
    with pytest.raises(InputError, match="tail_tuples"):
        KeyCounts(top, np.array([5]), np.array([4]))


def test_the_most_workers_come_from_p1() -> None:
    report = report_on(counted([30, 30, 20, 20]), 2)
    assert report.p1 == 0.3
    assert (report.most_workers_one_choice, report.most_workers_two_choices) == (3, 6)


# ---------------------------------------------------------------- the miniature and the forecasts


def test_a_stream_that_is_not_long_is_routed_as_it_is() -> None:
    counts = zipf(1.0, 5_000, 100_000)
    small = miniature(counts, TUPLES, len(counts.top.counts))
    assert len(small.tuples) == counts.tuples
    assert len(small.ids) == counts.keys
    assert (small.weights == 1).all()
    assert np.array_equal(np.bincount(small.tuples), small.counts)
    assert np.array_equal(np.sort(small.counts)[::-1][:2000], counts.top.counts)


@pytest.mark.parametrize("rows_per_key", [1, 64])
def test_a_long_stream_keeps_its_shares_in_small(rows_per_key: int) -> None:
    counts = zipf(1.0, 200_000, 20_000_000)
    small = miniature(counts, 100_000, 50, rows_per_key)
    assert len(small.tuples) == pytest.approx(100_000, rel=0.02)
    shares = small.counts[:50] / len(small.tuples)
    assert shares == pytest.approx(counts.top.counts[:50] / counts.tuples, rel=0.03)
    assert small.weights.sum() == pytest.approx(counts.keys, rel=0.05)


def test_sparks_own_hash_is_forecast_exactly_where_all_keys_are_known() -> None:
    counts = zipf(1.1, 1_500, 100_000)
    report = report_on(counts, 10)
    exact = np.zeros(10)
    for key, count in zip(counts.top.key_ids.tolist(), counts.top.counts, strict=True):
        exact[naive.signed(key >> 32, 32) % 10] += count
    assert forecast(report, "hash").load == pytest.approx(exact / exact.mean())
    assert forecast(report, "hash").replicas == 1_500


def test_forecasts_agree_with_a_simulation_of_the_stream_itself() -> None:
    stream = Zipf(z=1.2, keys=20_000, tuples=3_000_000, seed=3)
    schemes = [make(name, 32) for name in ("hash", "pkg", "shuffle")]
    keys, counts = np.unique(np.concatenate([chunk.keys for chunk in stream.chunks()]), return_counts=True)
    report = report_on(KeyCounts.of(key_ids(keys), counts), 32)
    for result in simulate(stream, schemes, sources=8):
        if result.scheme == "hash":
            continue
        mode = "online" if result.scheme == "pkg" else None
        predicted = forecast(report, result.scheme, mode)
        assert predicted.max_over_mean == pytest.approx(result.max_over_mean, rel=0.05)
        assert predicted.replicas == pytest.approx(result.replicas, rel=0.15)  # pkg's depend on how loads unfold


def test_every_scheme_that_goes_by_keys_is_forecast_the_recommended_first_the_others_by_straggler_factor() -> None:
    report = report_on(zipf(1.2, 1_000, 50_000), 16)
    by_keys = {name for name, registration in SCHEMES.items() if not registration.by_cost}
    assert {f.scheme for f in report.forecasts} == {*by_keys, WHOLE}
    assert {f.mode for f in report.forecasts if f.scheme == "pkg"} == {"planned", "online"}
    assert [f.mode for f in report.forecasts if f.scheme == "hash"] == ["spark"]
    assert report.forecasts[0].scheme == report.advice.scheme
    stragglers = [round(f.straggler, 3) for f in report.forecasts[1:]]
    assert stragglers == sorted(stragglers)


def test_every_forecast_says_why_it_is_recommended_or_not() -> None:
    report = report_on(zipf(1.2, 10_000, 1_000_000), 64, for_="python")
    reasons = {report.label(f): why for f, why in zip(report.forecasts, report.reasons, strict=True)}
    assert reasons["fanout"] == "recommended"
    assert reasons["Spark's hash"] == "as it is now"
    assert reasons["off_greedy"] == "not on Spark"
    assert reasons["shuffle"] == "more replicas"
    assert reasons["potc"] == "less even"
    assert set(reasons.values()) <= {
        "recommended",
        "as it is now",
        "not on Spark",
        "more replicas",
        "less even",
        "as good",
        "Python per row",
    }
    for f, why in zip(report.forecasts, report.reasons, strict=True):
        if why == "more replicas":
            assert f.replicas > forecast(report, "fanout").replicas


@pytest.mark.parametrize("rows", [300_000, 5_000_000])
def test_fanout_is_forecast_level_where_skew_is_mild(rows: int) -> None:
    """No key but the first is hot here, and cold keys alone are uneven: a plan evens them out, measured or not."""
    assert forecast(report_on(zipf(0.8, 100_000, rows), 50), "fanout").max_over_mean <= 1.02


# ---------------------------------------------------------------- what a row costs


def test_cheap_rows_are_left_alone_and_expensive_ones_are_split() -> None:
    """300,000 rows, 16 workers on 2 cores' worth of overhead: cheap rows gain less than counting and merging cost."""
    counts = zipf(1.2, 10_000, 300_000)
    cheap = report_on(counts, 16, for_="python", row_cost=1e-6)
    assert cheap.recommendation.startswith("Do nothing: at 1 us per row the stage takes about ")
    assert cheap.code == ""
    dear = report_on(counts, 16, for_="python", row_cost=0.01)
    assert dear.recommendation.startswith("Use fanout: the busiest worker gets 1.0")
    assert "At 10 ms per row the stage takes about" in dear.recommendation


def test_the_break_even_cost_is_where_the_advice_turns() -> None:
    counts = zipf(1.2, 10_000, 300_000)
    at = report_on(counts, 16, for_="python").advice.break_even
    assert at is not None
    assert report_on(counts, 16, for_="python", row_cost=0.99 * at).advice.scheme is None
    assert report_on(counts, 16, for_="python", row_cost=1.01 * at).advice.scheme == "fanout"


def test_without_a_cost_the_advice_says_from_which_cost_on_it_holds() -> None:
    report = report_on(zipf(1.2, 10_000, 300_000), 16, for_="python")
    assert report.recommendation.startswith("Use fanout if a row costs more than about ")
    assert report.seconds == (None,) * len(report.forecasts)
    assert report.to_dict()["break_even_row_cost"] == report.advice.break_even


def test_few_cores_have_enough_to_do_however_uneven_the_workers_are() -> None:
    report = report_on(zipf(1.2, 10_000, 300_000), 16, for_="python", row_cost=0.01, cores=2)
    assert report.recommendation.startswith("Do nothing: 2 cores have enough to do with 16 workers")


def test_times_are_those_of_the_busiest_worker_and_of_what_comes_besides() -> None:
    counts = zipf(1.2, 10_000, 300_000)
    report = report_on(counts, 16, row_cost=0.002)
    for f, seconds in zip(report.forecasts, report.seconds, strict=True):
        assert seconds is not None
        besides = seconds - f.max_over_mean * counts.tuples / 16 * 0.002
        today = f.mode == "spark"
        calls = counts.keys if today or f.scheme == WHOLE else counts.keys + f.replicas
        ours = (3.8, 3.5e-6, 5.5e-5) if f.scheme == WHOLE else (3.1, 1.1e-6, 2.8e-4)
        start, row, call = (1.4, 1.2e-6, 3.2e-4) if today else ours
        assert besides == pytest.approx(start + (row * counts.tuples + call * calls) / 16)
    assert "time" in report.table()[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2.5e-6, "2.5 us"),
        (1.2e-4, "0.12 ms"),
        (0.02, "20 ms"),
        (1.5, "1.5 s"),
        (119, "119 s"),
        (720, "12 min"),
        (9000, "2.5 h"),
    ],
)
def test_durations_are_short(value: float, shown: str) -> None:
    assert duration(value) == shown


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf"), "1", True])
def test_a_cost_is_a_number_of_seconds(wrong: object) -> None:
    with pytest.raises(InputError, match=r"^row_cost: must be seconds per row from 0 to 1e6, not "):
        report_on(counted([1]), 4, row_cost=wrong)  # type: ignore[arg-type]


def test_merging_counts_in_the_straggler_factor_where_keys_are_split() -> None:
    counts = counted([50_000] + [1] * 50_000)
    for for_, cost in ((None, 1.0), ("python", 0.1)):
        report = report_on(counts, 8, for_=for_)
        split, whole = forecast(report, "fanout"), forecast(report, "hash")
        assert split.replicas > report.keys
        assert split.straggler == pytest.approx(split.max_over_mean + cost * split.replicas / report.tuples)
        assert whole.straggler == whole.max_over_mean


def test_keys_that_share_an_id_are_routed_as_one() -> None:
    ids = np.array([7, 7, 8], np.uint64)
    assert report_on(KeyCounts.of(ids, np.array([10, 10, 10])), 2).forecasts


# ---------------------------------------------------------------- the advice


def advice(counts: KeyCounts, workers: int, for_: str | None = None) -> str:
    return report_on(counts, workers, for_=for_).recommendation


def test_uniform_keys_need_nothing() -> None:
    report = report_on(counted([100] * 20_000), 64)
    assert report.recommendation.startswith("Do nothing: Spark's own hash is balanced enough here")
    assert report.advice.scheme is None
    assert report.code == ""


@pytest.mark.parametrize("counts", [counted([500_000] + [50] * 10_000), zipf(1.2, 10_000, 1_000_000)])
def test_hot_keys_are_fanned_out(counts: KeyCounts) -> None:
    report = report_on(counts, 64, for_="python")
    assert report.recommendation.startswith("Use fanout if a row costs more than about ")
    assert (report.advice.scheme, report.advice.mode) == ("fanout", "planned")
    assert "apply_split(df, 'key', partial, merge, schema, workers=64, scheme=\"fanout\")" in report.code
    assert any("no scheme that keeps keys whole" in note for note in report.notes)


def test_a_built_in_aggregate_needs_nothing_however_skewed() -> None:
    said = advice(zipf(2.0, 1_000, 1_000_000), 64, "aggregate")
    assert said.startswith("Do nothing: Spark's own partial aggregation already handles this")


def test_joins_are_left_to_spark() -> None:
    assert "unskew does not offer joins yet" in advice(zipf(2.0, 1_000, 1_000_000), 64, "join")
    assert advice(counted([100] * 20_000), 64, "join").startswith("Do nothing")


def test_where_merging_costs_more_than_balance_gains() -> None:
    counts = counted([1_500] + [1] * 98_500)  # hash: twice the mean, but all rows would be merged again
    assert "costs as much as it gains" in advice(counts, 64, "stateful")
    assert advice(counts, 64, "python").startswith("Use whole keys (placed evenly) if a row costs")


def test_whole_keys_come_first_with_nothing_to_merge() -> None:
    """As airports do: the hottest key is less than a worker's share, but by hash several hot keys share a worker."""
    counts = zipf(0.72, 229, 300_000)
    for for_ in (None, "python", "merge", "whole"):
        report = report_on(counts, 8, for_=for_)
        assert report.advice.scheme == WHOLE
        assert forecast(report, WHOLE).max_over_mean < 1.02
        assert forecast(report, WHOLE).replicas == 229
        assert "with nothing to merge" in report.recommendation
        assert "apply_whole(df, 'key', function, schema, workers=8)" in report.code
        assert "up to 16 workers" in " ".join(report.notes)


def test_keys_are_split_only_where_the_hottest_is_too_much_for_a_worker() -> None:
    report = report_on(counted([40_000] + [100] * 1000), 8, for_="merge")
    assert report.advice.scheme == "fanout"
    assert any(
        "apply_whole places keys whole: the busiest worker then has 2.3 times the mean" in n for n in report.notes
    )


def test_keys_that_must_stay_whole_are_never_split() -> None:
    hot = report_on(counted([40_000] + [1000] * 100), 8, for_="whole")
    assert hot.advice.scheme in (None, WHOLE)
    assert {f.scheme: why for f, why in zip(hot.forecasts, hot.reasons, strict=True)}["fanout"] == "splits keys"
    alone = advice(counted([100_000]), 16, "whole")
    assert alone.startswith(
        "Do nothing, or use fewer workers: keys that are placed whole get the busiest worker from 16"
    )
    assert advice(counted([100_000]), 2000, "whole").startswith("Use fewer workers, at most 1: the hottest key alone")


def test_without_rows_workers_or_enough_rows_there_is_nothing_to_do() -> None:
    assert advice(counted([]), 64) == "Do nothing: there are no rows."
    assert advice(counted([9, 1]), 1) == "Do nothing: with one worker there is nothing to balance."
    assert advice(counted([9, 1]), 64).startswith("Do nothing, or use fewer workers: 10 rows")


def test_one_key_alone_is_split_over_all_workers() -> None:
    report = report_on(counted([100_000]), 16)
    assert report.p1 == 1
    assert report.zipf is None
    assert report.advice.scheme == "fanout"
    assert forecast(report, "fanout").replicas == 16
    assert forecast(report, "hash").max_over_mean == 16


def test_rows_without_a_key_are_pointed_out() -> None:
    alone = KeyCounts.of(np.array([NULL_KEY_ID]), np.array([1000]), ["null"])
    assert any(note.startswith("100.0% of the rows have no key (null)") for note in report_on(alone, 8).notes)


def test_a_sample_says_what_is_an_estimate() -> None:
    report = report_on(zipf(1.0, 1_000, 100_000), 8, sample=0.1)
    assert "sample of 0.1" in report.facts()
    assert "at least 1,000 keys" in report.facts()
    assert "lower bounds" in report.notes[0]


@pytest.mark.parametrize(("hottest", "said"), [(10_000, "Use fanout"), (100, "Do nothing, as far as p1 tells")])
def test_very_many_workers_are_judged_by_p1_alone(hottest: int, said: str) -> None:
    report = report_on(counted([hottest] + [100] * 100_000), 100_000)
    assert report.workers > MOST_WORKERS
    assert report.forecasts == ()
    assert report.recommendation.startswith(said)
    assert "not simulated" in str(report)


def test_other_purposes_and_numbers_of_workers_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"for_: must be one of None, aggregate, whole, merge, python, stateful, join, not 'fun'"
    ):
        report_on(counted([1]), 4, for_="fun")
    with pytest.raises(InputError, match=r"^for_: must be one of None, .*, not \['whole'\]$"):
        report_on(counted([1]), 4, for_=["whole"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="workers: must be an integer from 1"):
        report_on(counted([1]), 0)


# ---------------------------------------------------------------- how it shows itself


@pytest.mark.parametrize("workers", [1, 4, 100_000])
@pytest.mark.parametrize("counts", [[], [5], [900, 50, 30, 20]])
def test_every_report_prints_and_becomes_json(counts: list[int], workers: int) -> None:
    report = report_on(counted(counts), workers, columns=("user", "day"))
    assert report.recommendation.split()[0] in str(report)
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert found["tuples"] == sum(counts)
    assert found["columns"] == ["user", "day"]
    assert found["recommendation"] == report.recommendation
    assert found["for"] is None
    assert "counts" not in found


def test_keys_cannot_disturb_the_page_of_a_notebook() -> None:
    counts = KeyCounts.of(key_ids(["a"]), np.array([10]), ["[bold]<script>"])
    report = report_on(counts, 2)
    assert "[bold]<script>" in str(report)
    assert "<script>" not in report._repr_html_()
    assert "&lt;script&gt;" in report._repr_html_()


def test_it_fits_80_columns() -> None:
    shown = printed(report_on(zipf(1.2, 10_000, 1_000_000), 64), "utf-8")
    assert max(map(len, shown.splitlines())) <= 80
    assert "pkg (planned)" in shown
    assert "…" not in shown


def test_a_terminal_that_has_ascii_only_gets_ascii() -> None:
    assert "###" in printed(report_on(counted([900, 50, 30, 20]), 8), "ascii")


def printed(report: Report, encoding: str) -> str:
    file = TextIOWrapper(BytesIO(), encoding=encoding)
    Console(file=file, width=80, color_system=None, highlight=False).print(report)
    file.seek(0)
    return file.read()


def test_keys_that_are_dealt_over_all_workers_do_not_pile_up_on_the_first_ones() -> None:
    counts = counted([int(1000 / rank) + 1 for rank in range(1, 3001)])
    by_plan = [f for f in report_on(counts, 64).forecasts if (f.scheme, f.mode) == ("w_choices", "planned")]
    assert by_plan[0].max_over_mean < 1.2
