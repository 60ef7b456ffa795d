"""Costs of collective operations: start-ups, words and additions on the critical path, and crossover points.

A message of m words takes alpha + m beta seconds, an addition of two words gamma; a rank sends one message and receives
one at a time.  ``words`` is n, the length of the vector that is reduced; where a formula has n/p, p divides n.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...core import require
from ..closed_form import formula


class CollectiveCost(NamedTuple):
    """Start-ups, words sent and words added on the critical path of a collective operation.

    Attributes
    ----------
    starts : float
        Sequential message start-ups.
    words : float
        Words sent sequentially.
    adds : float
        Words added sequentially.

    Examples
    --------
    >>> CollectiveCost(2, 100, 50).seconds(alpha=1.0, beta=0.1, gamma=0.01)  # 2 + 10 + 0.5
    12.5
    """

    starts: float
    words: float
    adds: float

    def seconds(self, alpha: float, beta: float, gamma: float = 0.0) -> float:
        """The time: starts alpha + words beta + adds gamma."""
        for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
            require(value >= 0, name, value, "a number, at least 0")
        return self.starts * alpha + self.words * beta + self.adds * gamma


def _levels(ranks: int) -> int:
    """ceil(log2 p), in integers."""
    return (int(ranks) - 1).bit_length()


@formula(
    "algorithm in ('ring', 'recursive-doubling', 'rabenseifner', 'tree', 'server', 'server-overlapped',"
    " 'server-sharded')",
    "ranks >= 1",
    "words >= 0",
)
def allreduce_cost(algorithm: str, ranks: int, words: float) -> CollectiveCost:
    r"""Cost of an all-reduce: adding a vector of each of p ranks, so that every rank has the sum.

    Setting: p ranks, n words each; l = log2 p where p is a power of two.
    Statement: In every algorithm each rank has the sum at the end. The table gives its start-ups, its words and its
    additions.
    Kind: identity (counts of the algorithm's schedule).

    Statement (ring): 2 (p-1); 2 ((p-1)/p) n; ((p-1)/p) n. p divides n.

    Statement (recursive-doubling): l; l n; l n. For other p: floor(l) + 2; (floor(l) + 2) n; (floor(l) + 1) n.

    Statement (rabenseifner): 2 l; 2 ((p-1)/p) n; ((p-1)/p) n. For other p, with q = 2^floor(l): 2 floor(l) + 3; (2 + 2
    (q-1)/q) n; (1/2 + (q-1)/q) n. q divides n.
    Source (rabenseifner): [thakur2005optimization], which for other p rounds the words up to 4 n and the additions to 3
    n/2.

    Statement (tree): 2 ceil(l); 2 ceil(l) n; ceil(l) n. It is a reduction and then a broadcast.

    Statement (server): 2 p; 2 p n; (p-1) n. The server is a process of its own with one link.

    Statement (server-overlapped): 2; 2 p n; (p-1) n. Start-ups overlap, and words do not.

    Statement (server-sharded): 2 (p-1); 2 ((p-1)/p) n; ((p-1)/p) n. Every rank serves n/p words, and p divides n.

    Title (allreduce): Cost of an all-reduce.
    Statement (allreduce): Ring, recursive doubling, Rabenseifner's algorithm (p a power of two or not), tree, and
    parameter server take the start-ups, words and additions of their formulas, and every rank has the sum.
    Latex (allreduce): \text{ring: } 2(p-1)\alpha+2\tfrac{p-1}{p}n\beta+\tfrac{p-1}{p}n\gamma
    Attained (allreduce): where p (for Rabenseifner's: the power of two below) divides n.
    Proof (allreduce): By counting rounds: in each a rank sends one message and receives one.
    Source (allreduce): [thakur2005optimization]; servers derived.

    Source (ring, recursive-doubling): [thakur2005optimization].
    Source (tree, server, server-overlapped, server-sharded): derived.

    algorithm: One of those above.
    ranks: p, at least 1; one rank sends nothing, except to a server.
    words: n.

    >>> allreduce_cost("ring", 4, 100)
    CollectiveCost(starts=6, words=150.0, adds=75.0)
    >>> allreduce_cost("recursive-doubling", 4, 100)
    CollectiveCost(starts=2, words=200, adds=200)
    """
    p, n = int(ranks), words
    if algorithm.startswith("server") and algorithm != "server-sharded":
        return CollectiveCost(2 if algorithm == "server-overlapped" else 2 * p, 2 * p * n, (p - 1) * n)
    if p == 1:
        return CollectiveCost(0, 0.0, 0.0)
    share = (p - 1) / p * n
    down = p.bit_length() - 1  # floor(log2 p)
    other = p != 1 << down
    if algorithm == "recursive-doubling":
        return CollectiveCost(down + 2 * other, (down + 2 * other) * n, (down + other) * n)
    if algorithm == "rabenseifner":
        q = 1 << down
        part = (q - 1) / q * n
        return CollectiveCost(2 * down + 3 * other, 2 * part + 2 * other * n, part + other * n / 2)
    if algorithm == "tree":
        return CollectiveCost(2 * _levels(p), 2 * _levels(p) * n, _levels(p) * n)
    return CollectiveCost(2 * (p - 1), 2 * share, share)  # ring and shards


@formula("algorithm in ('ring', 'doubling')", "ranks >= 1", "words >= 0")
def allgather_cost(algorithm: str, ranks: int, words: float) -> CollectiveCost:
    r"""Cost of an all-gather: every rank gets the messages of all.

    Setting: p ranks with a message of m words each.
    Statement: In every algorithm each rank has every message at the end.
    Kind: identity.

    Statement (ring): It takes p - 1 start-ups and (p - 1) m words.

    Statement (doubling): It takes ceil(log2 p) start-ups and (p - 1) m words: recursive doubling, or Bruck's algorithm
    if p is not a power of two.

    Title (allgather): Cost of an all-gather.
    Statement (allgather): Ring and doubling take p - 1 and ceil(log2 p) start-ups, both (p - 1) m words, and every rank
    has every message.
    Latex (allgather): (p-1)\alpha+(p-1)m\beta,\quad\lceil\log_2p\rceil\alpha+(p-1)m\beta
    Proof (allgather): By counting rounds; every rank must receive p - 1 messages.
    Source (allgather): [thakur2005optimization].

    Source (ring, doubling): [thakur2005optimization] (which writes n for p m).

    ranks: p.
    words: m, of one rank's message.

    Returns
    -------
    CollectiveCost
        Without additions.

    >>> allgather_cost("ring", 8, 10), allgather_cost("doubling", 8, 10)
    (CollectiveCost(starts=7, words=70, adds=0.0), CollectiveCost(starts=3, words=70, adds=0.0))
    """
    starts = ranks - 1 if algorithm == "ring" else _levels(ranks)
    return CollectiveCost(starts, (ranks - 1) * words, 0.0)


@formula("ranks >= 1", "words >= 0")
def allreduce_words_lower_bound(ranks: int, words: float) -> float:
    r"""Words that some rank must send in any all-reduce that adds whole words.

    Title: Lower bound on the words of an all-reduce.
    Setting: p ranks, n words each, sums by combining pairs of words.
    Statement: In every all-reduce some rank sends at least 2 ((p-1)/p) n words; the ring sends no more.
    Kind: lower; attained by ring, shards, and Rabenseifner's where p is a power of two.
    Latex: \text{words}\ge2\,\frac{p-1}{p}\,n
    Attained: ring, shards, Rabenseifner's with p a power of two.
    Proof: Each of n sums takes p - 1 messages with a word of it, and p - 1 more to distribute the sum.
    Source: [patarasuk2009bandwidth].
    ranks: p.
    words: n.

    >>> allreduce_words_lower_bound(4, 100)
    150.0
    """
    return 2.0 * (ranks - 1) / ranks * words


@formula("ranks >= 2", "alpha >= 0", "gamma >= 0", "beta > 0", "power_of_two(ranks)")
def ring_doubling_crossover(ranks: int, *, alpha: float, beta: float, gamma: float = 0.0) -> float:
    r"""Length from which a ring is faster than recursive doubling.

    Title: Length from which a ring is faster.
    Setting: all-reduce over p ranks, p a power of two, l = log2 p.
    Statement: A ring and recursive doubling take the same time at n* = alpha (2 (p-1) - l)/(beta (l - 2 (p-1)/p) +
    gamma (l - (p-1)/p)), l = log2 p.
    Kind: identity.
    Latex: n^*=\frac{\alpha(2(p-1)-\log_2p)}{\beta(\log_2p-2\frac{p-1}p)+\gamma(\log_2p-\frac{p-1}p)}
    Proof: Set the two costs equal.
    Source: derived from :func:`allreduce_cost`.
    ranks: p, a power of two.
    alpha, beta: alpha at least 0, beta above 0.

    Returns
    -------
    float
        In words; infinite where a ring sends no fewer of them, as for two ranks.

    >>> ring_doubling_crossover(8, alpha=1.0, beta=1.0)  # (14 - 3)/(3 - 14/8)
    8.8
    """
    p = int(ranks)
    ring, doubling = allreduce_cost("ring", p, 1.0), allreduce_cost("recursive-doubling", p, 1.0)
    saved = beta * (doubling.words - ring.words) + gamma * (doubling.adds - ring.adds)
    return alpha * (ring.starts - doubling.starts) / saved if saved > 0 else math.inf


@formula("ranks >= 2", "0 < words <= inf", "beta > 0", "alpha >= 0", "gamma >= 0")
def gather_break_even(
    ranks: int, words: float = math.inf, *, alpha: float = 0.0, beta: float = 1.0, gamma: float = 0.0
) -> float:
    r"""Compression ratio from which a gather beats the dense ring.

    Title: Compression ratio that messages need if they cannot be added.
    Setting: compressed messages cannot be added, so every rank gathers those of all (ring all-gather); the alternative
    is a ring all-reduce of the n uncompressed words.
    Statement: Gathering compressed messages is faster than adding full ones in a ring iff they are more than p/(2 +
    gamma/beta + p alpha/(n beta)) times smaller: p/2 times in bandwidth alone.
    Kind: identity.
    Latex: \frac nm>\frac p{2+\gamma/\beta+p\alpha/(n\beta)}\;\to\;\frac p2
    Proof: A gather moves p - 1 messages past every rank, a ring two times (p-1)/p of one.
    Source: derived: (p-1)(alpha + m beta) < 2 (p-1) alpha + ((p-1)/p) n (2 beta + gamma).
    ranks: p.
    words: n, above 0; infinite for the limit.

    Returns
    -------
    float
        The ratio n/m; below 1 if even a longer message would be faster.

    >>> gather_break_even(8), gather_break_even(8, 4.0, alpha=1.0)  # 8/2, 8/(2 + 8/4)
    (4.0, 2.0)
    """
    return ranks / (2.0 + gamma / beta + ranks * alpha / (words * beta))


@formula("work > 0", "ranks >= 1", "words >= 0", "alpha >= 0", "beta >= 0", "gamma >= 0")
def ring_speed_up(ranks: int, *, work: float, words: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Speed-up of p ranks over one, on the same batch.

    Setting: a step on one rank takes W seconds of gradients; p ranks share them and add up n words in a ring.
    Statement: W/(W/p + 2 (p-1) alpha + ((p-1)/p) n (2 beta + gamma)).
    Kind: identity.
    Source: derived from allreduce_cost.
    ranks: p, at least 1.
    work: W.
    words, alpha, beta, gamma: At least 0.

    >>> ring_speed_up(2, work=2.0, words=1.0, alpha=0.25, beta=0.5)  # 2/(1 + 0.5 + 0.5)
    1.0
    """
    return work / (work / ranks + allreduce_cost("ring", ranks, words).seconds(alpha, beta, gamma))


@formula("work > 0", "words >= 0", "alpha >= 0", "beta >= 0", "gamma >= 0")
def ring_best_ranks(*, work: float, words: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    r"""Number of ranks beyond which adding ranks is slower.

    Title: Number of ranks with the shortest step.
    Setting: as for :func:`ring_speed_up`.
    Statement: p ranks that share W seconds of gradients and add n words in a ring are fastest near p* = sqrt((W - n (2
    beta + gamma))/(2 alpha)). The number p* is at most 1 if the words alone take longer than the work. It is infinite
    if they do not and alpha = 0.
    Kind: lower.
    Latex: p^*=\sqrt{\frac{W-n(2\beta+\gamma)}{2\alpha}}
    Attained: the fastest integer is p* rounded up or down.
    Proof: The derivative of W/p + 2 (p-1) alpha + (1 - 1/p) n (2 beta + gamma).
    Source: derived.
    work: W.

    Returns
    -------
    float
        At least 1.

    >>> ring_best_ranks(work=34.0, words=1.0, alpha=1.0, beta=1.0)  # sqrt(32/2)
    4.0
    """
    left = work - words * (2.0 * beta + gamma)
    if left <= 0.0:
        return 1.0
    return max(1.0, math.sqrt(left / (2.0 * alpha))) if alpha > 0.0 else math.inf
