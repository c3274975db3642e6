"""The naive twin of every scheme: stream of key ids, workers, parameters -> list of workers."""

import naive
import naive_bounds
import naive_cg
import naive_fish
import naive_heads

TWINS = {
    "bounded": naive_bounds.bounded,
    "cg": naive_cg.cg,
    "d_choices": naive_heads.head_and_tail,
    "fanout": naive.fanout,
    "fish": naive_fish.fish,
    "hash": naive.key_grouping,
    "off_greedy": naive.off_greedy,
    "on_greedy": naive.on_greedy,
    "pkg": naive.greedy_d,
    "porc": naive_bounds.porc,
    "potc": naive.static_potc,
    "random_two": naive_bounds.random_two,
    "shuffle": naive.shuffle,
    "w_choices": naive_heads.w_choices,
}
