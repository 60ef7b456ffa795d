"""What the words of the ledger mean: one home for the page, the exports and the documentation."""

from __future__ import annotations

from ..bounds.bibliography import KNOWLEDGE
from ..reporting.scale import SCALE

VERDICT = {word: said for word, (said, *_) in SCALE.items()}
REFUTED = {
    "in print": "the sentence was read in the source",
    "quoted": "the text was not at hand: it is refuted as others quote it, or as it is remembered",
    "reading": "the sentence is the authors', and this reading of it is ours",
    "question": "a question of our own; nobody claims it",
}
CERTIFICATE = {
    "symbolic": "a proof for all parameters of a stated domain, which a program has checked",
    "symbolic instance": "a proof for all parameters of a part of the claim, such as three workers, which is named",
    "symbolic composition": "a proof for all parameters from other claims, not all of which are secured so themselves; "
    "they are named",
    "identity": "two computed numbers that agree to machine precision, at the inputs that are listed",
    "exact witness": "an instance, computed without sampling, that attains the bound",
    "composition": "the theorem is recomputed from its lemmas, which are claims of their own and hold",
    "semidefinite program": "the worst case of a class of functions, from a certificate that is checked, at the "
    "parameters that are listed",
    "measured": "a run, with an interval",
    "conjecture": "no proof is known; instances are compared with it",
}
MEASURED_BY = {
    "the package's run": "what users run produced the numbers",
    "the claim's own code": "the code of the claim, which is shown with it, drew the numbers",
    "another closed form": "nothing was sampled: computed numbers are compared",
}
KIND = {
    "identity": "two sides that are equal",
    "tight": "a bound that is attained",
    "upper": "a bound from above",
    "lower": "a bound from below",
    "rate": "an exponent: the slope of a logarithm",
}
WORDS = {  # where a word stands, to the words there and what they mean
    "Verdict": VERDICT,
    "Refuted": REFUTED,
    "Secured by": CERTIFICATE,
    "Measured by": MEASURED_BY,
    "Source": KNOWLEDGE,
    "Kind": KIND,
}


def meaning(place: str, word: str) -> str:
    """What a word means; empty for one of a claim's own.

    Examples
    --------
    >>> meaning("Source", "derived")
    'derived here'
    """
    return WORDS[place].get(word, "")
