"""Ctrl-C while Spark starts or works: one line, exit status 130, no process and no file left behind."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from interrupting import COMMAND, interrupt

STOPPED = (130, "", "unskew: stopped\n", [], "")
STEPS = [
    "starting a local Spark",
    "writing 20,000 words as Parquet",
    "warming up, so that the first is not the slowest",
    "plain hash over 4 workers",
]


def there_is(pattern: str) -> Callable[[Path], bool]:
    def look(temporary: Path) -> bool:
        try:
            return any(temporary.glob(pattern))
        except FileNotFoundError:  # a folder that went while it was looked at
            return False

    return look


@pytest.mark.parametrize(
    "sign",
    [pytest.param("*/spark.log", marks=pytest.mark.slow), "*/blockmgr-*"],
    ids=["while Spark starts", "while it counts"],
)
def test_doctor(tmp_path: Path, sign: str) -> None:
    pa.parquet.write_table(pa.table({"key": pa.array(range(3_000_000))}), tmp_path / "keys.parquet")
    arguments = ["doctor", str(tmp_path / "keys.parquet"), "--key", "key", "--out", "page.html"]
    assert interrupt(tmp_path, arguments, there_is(sign)) == STOPPED


@pytest.mark.slow
def test_demo_even_for_the_impatient(tmp_path: Path) -> None:
    arguments = ["demo", "--tuples", "20000", "--workers", "4", "--row-cost", "0.1"]
    stopped = interrupt(tmp_path, arguments, there_is("unskew-demo-*/hash"), presses=3)
    *steps, last = stopped.err.splitlines()  # standard error is no terminal here, so each step is a line
    assert steps == STEPS[: len(steps)]
    assert stopped._replace(err=f"{last}\n") == STOPPED


@pytest.mark.slow
def test_reproduce_goes_on_from_the_passes_that_were_done(tmp_path: Path) -> None:
    arguments = ["reproduce", "pkg", "--quick", "--only", "fig7"]
    out = tmp_path / "here/unskew-reproduce-pkg-fig7"
    stopped = interrupt(tmp_path, arguments, lambda temporary: any((out / "unskew-passes").glob("[!.]*.json")))
    assert (stopped.status, stopped.out, stopped.processes) == (130, "", "")
    *_, kept, last = stopped.err.splitlines()
    assert last == "unskew: stopped"
    passes = list((out / "unskew-passes").iterdir())
    assert kept == f"passes kept: {len(passes)}; the same command goes on from there with --out {out.name}"
    assert all(left.startswith("here/") for left in stopped.left)
    subprocess.run([*COMMAND, *arguments, "--out", out.name], cwd=out.parent, capture_output=True, check=True)
    assert (out / "index.html").exists()
    assert not (out / "unskew-passes").exists()


@pytest.mark.slow
def test_run(tmp_path: Path) -> None:
    stopped = interrupt(tmp_path, ["run", "wordcount", "--rows", "200000", "--batches", "20"], there_is("*/blockmgr-*"))
    *steps, last = stopped.err.splitlines()
    assert all(step.startswith(("starting", "making", "batch")) for step in steps), steps
    assert stopped._replace(err=f"{last}\n") == STOPPED
