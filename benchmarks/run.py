"""`make bench`: all benchmarks, one after the other. The last takes some minutes."""

import cold_start
import kernels
import simulator
import twitter

for benchmark in (kernels, simulator, cold_start, twitter):
    benchmark.main()
