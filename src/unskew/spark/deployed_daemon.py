"""`prepared_daemon` for `unskew reproduce deployments`: with the kernels of all schemes that are deployed.

Else each of a hundred workers would load each of them.
"""

from unskew.spark.prepared_daemon import run_prepared

if __name__ == "__main__":
    run_prepared("hash", "shuffle", "pkg", "d_choices", "w_choices", "fish", "cg")
