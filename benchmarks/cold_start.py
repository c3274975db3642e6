"""The first routed batch in a fresh process with a warm kernel cache, imports included."""

import subprocess
import sys

from timing import console, interleaved, show

ROUTE = """
import numpy, unskew
unskew.Router(unskew.make("pkg", 16)).route(unskew.key_ids(numpy.arange(1000)))
"""


def fresh(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    console.rule("Cold start: a fresh process")
    cases = {
        "python alone": lambda: fresh("pass"),
        "import numpy, numba, pyarrow": lambda: fresh("import numpy, numba, pyarrow"),
        "first routed batch": lambda: fresh(ROUTE),
    }
    show("1,000 keys (look at the raw seconds)", interleaved(cases), 1_000, "import numpy, numba, pyarrow")


if __name__ == "__main__":
    main()
