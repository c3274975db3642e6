"""The papers' evaluations, rerun: one package per paper, one file per table or figure.

A file holds everything about its table or figure: the grid of simulations, the published numbers, the verdicts and the
picture. What the papers share: `grid` runs simulations as one Spark job, `paper` says what an experiment is, `claims`
puts published beside measured, `evaluation` holds all claims of a rerun and renders them, `report` writes everything
into a folder; `real` finds real streams, `spread` tells what several hash functions gave, `words` prints numbers.
"""
