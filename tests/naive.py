"""Every scheme's pseudocode again, and Spark's two hashes, in plain slow Python.

The twins share no code with the library: lists, dicts and unbounded integers only. Tests compare the kernels with them
tuple by tuple. A key is a key id here too, as a plain int.
"""

import math
import struct

MASK32, MASK64 = 2**32 - 1, 2**64 - 1
SPARK_SEED = 42


# ---------------------------------------------------------------- hashes


def rotate_left(x, by, bits):
    return ((x << by) | (x >> (bits - by))) & (2**bits - 1)


def murmur3(data, seed=SPARK_SEED):
    """MurmurHash3_x86_32 as Spark has it: each byte of the tail is a block of its own, sign-extended."""
    aligned = len(data) // 4 * 4
    blocks = [word for (word,) in struct.iter_unpack("<I", data[:aligned])]
    blocks += [byte for (byte,) in struct.iter_unpack("<b", data[aligned:])]
    h = seed
    for block in blocks:
        k = rotate_left((block & MASK32) * 0xCC9E2D51 & MASK32, 15, 32) * 0x1B873593 & MASK32
        h = (rotate_left(h ^ k, 13, 32) * 5 + 0xE6546B64) & MASK32
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK32
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK32
    return h ^ h >> 16


PRIME_1, PRIME_2, PRIME_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
PRIME_4, PRIME_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xxhash64(data, seed=SPARK_SEED):
    """XXH64, from its specification."""

    def lane(accumulator, word):
        return rotate_left((accumulator + word * PRIME_2) & MASK64, 31, 64) * PRIME_1 & MASK64

    h, rest = (seed + PRIME_5) & MASK64, memoryview(data)
    if len(data) >= 32:
        lanes = [seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1]
        while len(rest) >= 32:
            lanes = [lane(v, word) for v, word in zip(lanes, struct.unpack("<4Q", rest[:32]), strict=True)]
            rest = rest[32:]
        h = sum(rotate_left(v, by, 64) for v, by in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK64
        for v in lanes:
            h = ((h ^ lane(0, v)) * PRIME_1 + PRIME_4) & MASK64
    h = (h + len(data)) & MASK64
    while len(rest) >= 8:
        h = (rotate_left(h ^ lane(0, struct.unpack("<Q", rest[:8])[0]), 27, 64) * PRIME_1 + PRIME_4) & MASK64
        rest = rest[8:]
    if len(rest) >= 4:
        word = struct.unpack("<I", rest[:4])[0]
        h = (rotate_left(h ^ (word * PRIME_1 & MASK64), 23, 64) * PRIME_2 + PRIME_3) & MASK64
        rest = rest[4:]
    for byte in rest:
        h = rotate_left(h ^ (byte * PRIME_5 & MASK64), 11, 64) * PRIME_1 & MASK64
    h = (h ^ h >> 33) * PRIME_2 & MASK64
    h = (h ^ h >> 29) * PRIME_3 & MASK64
    return h ^ h >> 32


def signed(x, bits):
    return x - 2**bits if x >= 2 ** (bits - 1) else x


def key_id(key, integer="<q"):
    """High half Spark's hash, low half that of Spark's xxhash64; `integer` packs an int as bigint (<q) or int (<i)."""
    if key is None:
        return SPARK_SEED << 32 | SPARK_SEED
    data = struct.pack(integer, key) if isinstance(key, int) else key.encode() if isinstance(key, str) else key
    return murmur3(data) << 32 | xxhash64(data) & MASK32


def candidate(key, j, workers):
    """H_j(key): where Spark puts the row (key, salt=j)."""
    return signed(murmur3(struct.pack("<I", j), seed=key >> 32), 32) % workers


def salt_for(key, worker, workers):
    j = 0
    while candidate(key, j, workers) != worker:
        j += 1
    return j


# ---------------------------------------------------------------- schemes: stream of key ids -> list of workers


def naive_hash(stream, workers, seed=0):
    return [candidate(key, seed, workers) for key in stream]


def naive_shuffle(stream, workers, seed=0):
    return [(seed + t) % workers for t in range(len(stream))]


def naive_pkg(stream, workers, choices=2, seed=0):
    """Partial key grouping: each tuple to the least loaded candidate of its key, the first of equals."""
    load, decisions = [0] * workers, []
    for key in stream:
        candidates = [candidate(key, seed * choices + j, workers) for j in range(choices)]
        worker = min(candidates, key=load.__getitem__)
        load[worker] += 1
        decisions.append(worker)
    return decisions


def naive_potc(stream, workers, choices=2, seed=0):
    load, home, decisions = [0] * workers, {}, []
    for key in stream:
        if key not in home:
            candidates = [candidate(key, seed * choices + j, workers) for j in range(choices)]
            home[key] = min(candidates, key=load.__getitem__)
        load[home[key]] += 1
        decisions.append(home[key])
    return decisions


def naive_on_greedy(stream, workers):
    load, home, decisions = [0] * workers, {}, []
    for key in stream:
        if key not in home:
            home[key] = load.index(min(load))
        load[home[key]] += 1
        decisions.append(home[key])
    return decisions


def naive_off_greedy(stream, workers, counts=None):
    """`counts`: key -> its tuples, beforehand; left out, those of the stream itself in the order of the key ids."""
    if counts is None:
        counts = {key: list(stream).count(key) for key in sorted(set(stream))}
    load, home = [0] * workers, {}
    for key in sorted(counts, key=counts.__getitem__, reverse=True):  # stable: equals stay in the order given
        home[key] = load.index(min(load))
        load[home[key]] += counts[key]
    return [home[key] if key in home else candidate(key, 0, workers) for key in stream]


def naive_attempt(taken, counts, workers, mean):
    """The load, and the places of the keys `taken` that are not whole on their candidate 0."""
    full, goal = max(1.005 * mean, math.ceil(mean)), max(1.01 * mean, math.ceil(mean))
    load = [0.0] * workers
    for key in counts:
        if key not in taken:
            load[candidate(key, 0, workers)] += counts[key]
    dealt = {}
    for key in taken:
        home = candidate(key, 0, workers)
        if load[home] + counts[key] <= full:
            load[home] += counts[key]
            continue
        chosen, content, level = [], float(counts[key]), math.inf
        for worker in sorted(range(workers), key=load.__getitem__):
            if level <= full or load[worker] >= level or len(chosen) == counts[key]:
                break
            chosen.append(worker)
            content += load[worker]
            level = content / len(chosen)
        parts = [level - load[worker] for worker in chosen]
        total, lowest = len(chosen), math.inf
        while total <= max(8192, len(chosen)) and lowest > goal:
            ideal = [part * total / math.fsum(parts) for part in parts]
            rounded = [math.floor(number) for number in ideal]
            for i in sorted(range(len(parts)), key=lambda i: rounded[i] - ideal[i])[: total - sum(rounded)]:
                rounded[i] += 1
            after = [load[w] + counts[key] * number / total for w, number in zip(chosen, rounded, strict=True)]
            if max(after) < lowest:
                lowest, best, share = max(after), after, rounded
            total *= 2
        for worker, amount in zip(chosen, best, strict=True):
            load[worker] = amount
        share = {w: number // math.gcd(*share) for w, number in zip(chosen, share, strict=True) if number}
        if share != {home: 1}:
            dealt[key] = share
    return load, dealt


def naive_fanout(stream, workers):
    """Ever more of the hottest keys are dealt anew until the busiest worker is near the mean; their tuples go round."""
    counts = {key: list(stream).count(key) for key in sorted(set(stream))}
    mean = len(stream) / workers
    by_count = sorted(counts, key=lambda key: -counts[key])
    taken = max(1, sum(counts[key] * 10 * workers > len(stream) for key in counts))
    attempts = [naive_attempt(by_count[:taken], counts, workers, mean)]
    while max(attempts[-1][0]) > max(1.01 * mean, math.ceil(mean)) and taken < min(2000, len(counts)):
        taken = min(2000, 2 * taken)
        attempts.append(naive_attempt(by_count[:taken], counts, workers, mean))
    _, dealt = min(attempts, key=lambda attempt: max(attempt[0]))
    places = {}
    for key, share in dealt.items():
        turns = [((turn + 0.5) / share[worker], worker) for worker in share for turn in range(share[worker])]
        places[key] = [worker for _, worker in sorted(turns)]
    seen, decisions = dict.fromkeys(places, 0), []
    for key in stream:
        if key in places:
            decisions.append(places[key][seen[key] % len(places[key])])
            seen[key] += 1
        else:
            decisions.append(candidate(key, 0, workers))
    return decisions
