"""The papers' evaluations, rerun: one package a paper, one file a table or figure.

A file holds everything about its table or figure: the grid of simulations, the published numbers, the verdicts and the
picture. What the papers share: `grid` runs simulations as one Spark job, `paper` says what an experiment is, `claims`
puts published beside measured, `report` writes the results and the page; `real` finds real streams, `words` prints
numbers.
"""
