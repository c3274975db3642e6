"""Draws the pictures of docs/choosing.md and docs/schemes, from the code where there is something to compute.

Run it as `python docs/images/make.py`; it writes the .svg files beside itself.
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from unskew import Frequencies, candidate, key_ids, make_plan
from unskew.ring import KEY_SALT, POSITIONS, first_workers, home_node, new_ring
from unskew.schemes.d_choices import fan_out as head_fan_out

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, RED, GREY = "#3b6ea8", "#d9822b", "#4f9d5d", "#b8433c", "#8a8f98"
PALE = {BLUE: "#d6e3f1", ORANGE: "#f8e2cb", GREEN: "#d9ecdc", RED: "#f2d6d4", GREY: "#e9ebee"}

plt.rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text: small files that can be searched
        "svg.hashsalt": "unskew",  # the same picture gives the same file
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)


def save(name: str) -> None:
    plt.savefig(HERE / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight", facecolor="white")
    plt.close()


def blank(width: float, height: float, right: float, top: float) -> Axes:
    """Axes without lines, from (0, 0) to (right, top)."""
    _, axes = plt.subplots(figsize=(width, height))
    axes.set(xlim=(0, right), ylim=(0, top))
    axes.axis("off")
    return axes


def box(axes: Axes, x: float, y: float, width: float, height: float, text: str, color: str, **style: object) -> None:
    frame = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.08")
    frame.set(facecolor=PALE[color], edgecolor=color, linewidth=1.2)
    axes.add_patch(frame)
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", **style)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str, **style: object) -> None:
    shape = {"arrowstyle": "-|>", "color": color, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0} | style
    axes.annotate("", end, start, arrowprops=shape)


# ---------------------------------------------------------------- which scheme when

QUESTIONS = [
    (
        "The work keeps no state per key,\nbut tuples cost different amounts",
        ["full_knowledge", "posg"],
        "costs known, or learnt; on Spark: map_balanced",
    ),
    ("The work keeps no state per key", ["shuffle"], "balance for free"),
    (
        "A key must stay whole, and\nload or workers change",
        ["partitioner"],
        "moves few keys; on Spark: apply_whole",
    ),
    ("A key must stay whole", ["hash", "potc", "on_greedy", "off_greedy"], "off_greedy where counts are known"),
    ("Workers are unequal,\nor come and go", ["cg", "fish", "bounded"], "fish where popularity changes too"),
    ("The hottest key is well under\none worker's share (p1 W << 1)", ["hash"], "nothing to repair"),
    ("The hottest key fits\non two workers (p1 W < 2)", ["pkg"], "two choices are enough"),
    ("Keys can be counted\nbeforehand", ["fanout"], "fewest replicas"),
    ("Popularity changes", ["fish"], "counts what is hot now"),
    ("A bound is needed\nat every moment", ["porc"], "load under (1 + epsilon) mean"),
]
LAST = (["d_choices", "w_choices"], "few replicas, or less time per tuple")


def choosing() -> None:
    step = 1.25
    top = step * (len(QUESTIONS) + 1) + 0.3
    axes = blank(8.6, 9.5, 11.2, top)
    axes.text(0.1, top - 0.05, "Go down until the answer is yes. p1: share of the hottest key, W: workers.", va="top")
    for row, (question, schemes, why) in enumerate(QUESTIONS):
        y = top - 0.3 - step * (row + 1)
        box(axes, 0.1, y, 4.3, 0.85, question, BLUE, size=9)
        arrow(axes, (4.4, y + 0.425), (5.4, y + 0.425), GREEN)
        axes.text(4.9, y + 0.5, "yes", color=GREEN, ha="center", size=9)
        answer(axes, y, schemes, why)
        arrow(axes, (2.25, y), (2.25, y - step + 0.85), GREY)
        axes.text(2.35, y - 0.3, "no", color=GREY, size=9)
    box(axes, 0.1, 0.0, 4.3, 0.85, "otherwise", GREY, size=9)
    arrow(axes, (4.4, 0.425), (5.4, 0.425), GREEN)
    answer(axes, 0.0, *LAST)
    save("choosing")


def answer(axes: Axes, y: float, schemes: list[str], why: str) -> None:
    box(axes, 5.4, y, 5.7, 0.85, "", GREEN)
    axes.text(5.6, y + 0.57, ", ".join(schemes), family="monospace", va="center", weight="bold")
    axes.text(5.6, y + 0.22, why, va="center", color="#444444", size=9)


# ---------------------------------------------------------------- how many workers a key gets


def fan_out() -> None:
    """The rules of the schemes for 64 workers and a Zipf stream (z = 1.2, 100,000 keys); fanout's from its plan."""
    workers, keys = 64, 100_000
    counts = np.rint(2e7 * np.arange(1, keys + 1) ** -1.2).astype(np.int64)
    frequencies = Frequencies(key_ids(np.arange(1, keys + 1)), counts, int(counts.sum()))
    shares = counts[:400] / counts.sum()
    head = shares[shares > 1 / (5 * workers)]
    choices = head_fan_out(head, 1 - head.sum(), workers, 1e-4)
    chk = np.maximum(2, workers // 2 ** np.floor(np.log2(shares[0] / shares)))
    plan = make_plan("fanout", workers, frequencies).table().to_pydict()

    _, axes = plt.subplots(figsize=(7.2, 3.8))
    lines = {
        "w_choices": (np.where(shares > 1 / (5 * workers), workers, 2), ORANGE),
        "d_choices": (np.where(shares > 1 / (5 * workers), choices, 2), GREEN),
        "fish": (np.where(shares > 1 / (4 * workers), chk, 2), RED),
        "pkg": (np.full(len(shares), 2), GREY),
        "hash": (np.ones(len(shares)), "#bbbbbb"),
    }
    for scheme, (fan, color) in lines.items():
        axes.step(shares * workers, fan, color=color, linewidth=1.8, where="post", label=scheme)
    split = np.array([len(chosen) for chosen in plan["workers"]])
    axes.plot(np.array(plan["share"]) * workers, split, "o", color=BLUE, ms=4.5, label="fanout")
    needed = np.geomspace(0.1, 20, 400)
    axes.plot(needed, np.maximum(1, np.ceil(needed)), "k:", linewidth=1.2, label="needed")
    axes.set(xscale="log", xlim=(0.1, 15), ylim=(0.85, 80))
    axes.set_yscale("log", base=2)
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.1", "0.2", "0.5", "1", "2", "5", "10"])
    axes.set_yticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
    axes.minorticks_off()
    axes.set_xlabel("share of the key times W (1: as much as one worker should get)")
    axes.set_ylabel("workers of the key, of W = 64")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save("fan-out")


# ---------------------------------------------------------------- how schemes decide


def ring() -> None:
    """Four workers with three virtual nodes each, and the walk of one key."""
    nodes = new_ring(np.arange(1662, 1666), 3)  # names that stand well apart
    colors = (BLUE, ORANGE, GREEN, RED)
    key = key_ids(["be"])[0]
    axes = blank(4.6, 4.0, 4, 3.5)
    axes.set_aspect("equal")
    axes.add_patch(plt.Circle((2, 1.75), 1.2, fill=False, color=GREY, linewidth=1.2))

    def at(position: float, radius: float) -> tuple[float, float]:
        angle = np.pi / 2 - 2 * np.pi * position / POSITIONS
        return 2 + radius * np.cos(angle), 1.75 + radius * np.sin(angle)

    home, candidates = int(home_node(nodes, key)), first_workers(nodes, key, 3).tolist()
    for i in range(len(nodes.node_worker)):
        node = (home + i) % len(nodes.node_worker)
        worker, position = int(nodes.node_worker[node]), float(nodes.node_position[node])
        axes.plot(*at(position, 1.2), "o", color=colors[worker], ms=11)
        if worker in candidates:
            number = candidates.index(worker) + 1
            candidates[number - 1] = None  # a further node of the same worker is passed
            axes.text(*at(position, 1.36), f"candidate {number}", ha="right", va="center", size=9)
    place = float(candidate(key, KEY_SALT, POSITIONS))
    axes.plot(*at(place, 1.2), "*", color="black", ms=13)
    axes.text(*at(place, 0.93), "key", ha="center", va="center", weight="bold")
    arrow(
        axes, at(place + POSITIONS / 60, 1.02), at(place + POSITIONS / 7, 1.02), GREY, connectionstyle="arc3,rad=-0.2"
    )
    for worker, color in enumerate(colors):
        axes.plot(1.72, 2.1 - 0.22 * worker, "o", color=color, ms=9)
        axes.text(1.86, 2.1 - 0.22 * worker, f"worker {worker}", va="center", size=9)
    save("ring")


def virtual_workers() -> None:
    axes = blank(7.2, 3.0, 12, 5)
    names = ("fast", "slow", "slow")
    for left, title, held in ((0.2, "start: equal shares", (3, 3, 3)), (7.0, "later: by speed", (5, 2, 2))):
        axes.text(left + 2.2, 4.75, title, ha="center", weight="bold")
        for i, (name, count) in enumerate(zip(names, held, strict=True)):
            x = left + 1.6 * i
            color = (GREEN, RED, RED)[i] if left < 1 else BLUE
            for v in range(count):
                box(axes, x, 0.75 + 0.72 * v, 1.2, 0.6, "", color)
            axes.text(x + 0.6, 0.45, name, ha="center", va="top")
            state = ("idle", "busy", "busy")[i] if left < 1 else ""
            axes.text(x + 0.6, 0.12, state, ha="center", va="top", color=color, size=9)
    arrow(axes, (2.3, 3.15), (0.85, 3.3), "black", connectionstyle="arc3,rad=0.4")
    axes.text(1.6, 3.85, "one per window", ha="center", size=9)
    arrow(axes, (5.2, 1.9), (6.6, 1.9), GREY)
    save("virtual-workers")


def room() -> None:
    loads = (0.8, 1.02, 0.9, 1.02, 0.95, 0.75)
    order = {1: 1, 3: 2, 5: 3}  # worker -> which candidate of the key it is
    axes = blank(6.2, 2.9, 6.6, 1.72)
    limit = 1.02
    for worker, load in enumerate(loads):
        full = load >= limit
        color = RED if full else BLUE
        axes.bar(worker + 0.5, load, 0.62, bottom=0.18, color=PALE[color], edgecolor=color)
        axes.text(worker + 0.5, 0.05, f"worker {worker}", ha="center", size=9)
        if worker in order:
            text = f"candidate {order[worker] - 1}\n" + ("full" if full else "has room")
            axes.text(worker + 0.5, 1.34, text, ha="center", size=9, color=RED if full else GREEN)
            arrow(axes, (worker + 0.5, 1.32), (worker + 0.5, 1.23 if full else load + 0.2), RED if full else GREEN)
    axes.plot([0.05, 6.0], [0.18 + limit] * 2, "--", color="black", linewidth=1)
    axes.text(6.03, 0.18 + limit, "(1 + epsilon)\nmean", va="center", size=9)
    axes.text(0.05, 1.64, "a tuple tries the candidates of its key in order", size=9, color=GREY)
    save("room")


PICTURES = {
    "choosing": choosing,
    "fan-out": fan_out,
    "ring": ring,
    "virtual-workers": virtual_workers,
    "room": room,
}

if __name__ == "__main__":
    for draw in PICTURES.values():
        draw()
