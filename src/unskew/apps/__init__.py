"""The applications that the papers were written for, one file each: start from one of them. `unskew run` runs them.

`source.py` reads rows, `job.py` is what a run is given, `found.py` what it hands back. All else is the public API.
"""
