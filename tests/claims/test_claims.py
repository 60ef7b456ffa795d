"""Every registered claim is measured in its quick form: the numbers are those of the record, the verdict the expected
one, and every mutant is refuted."""

import json
import math
import re

import numpy as np
import pytest

import theory as th
from theory import bounds
from theory.bounds.bibliography import entries, fields, source_known
from theory.bounds.closed_form import parts, theorem
from theory.claims import (
    claim,
    equality,
    exit_code,
    explain,
    find_claim,
    identity,
    ledger,
    limit,
    list_claims,
    lower,
    rate,
    upper,
    verify,
)
from theory.claims.base import REGISTRY, registered
from theory.claims.judgement import judge, overall
from theory.claims.records import differences, measured, read_records, same_software
from theory.claims.verification import judged
from theory.measure import Interval, exactly

RECORDS = read_records()
CHEAP = [id for id in list_claims() if id.split(".")[0] in ("qsgd", "randk", "topk", "minibatch")]
AGAIN = "docs/claims.jsonl is not true any more: run `make claims`, and look at what changed"


@pytest.mark.parametrize("id", list_claims())
def test_claim(id):
    record, known = measured(find_claim(id), quick=True), RECORDS[id]
    result = judged(find_claim(id), record)
    if same_software(known) and find_claim(id).repeatable:
        assert differences(known, record) == [], AGAIN
    assert judged(find_claim(id), known).verdict == result.verdict, AGAIN
    print(result)
    assert result.verdict in find_claim(id).expected, str(result)
    assert result.survivors == [], str(result)
    assert result.ok and exit_code([result]) == 0
    if result.kind == "rate":
        slope = result.checks[0]
        assert abs(slope.interval.estimate - slope.predicted) <= slope.tolerance
    json.dumps(result.as_dict(), allow_nan=False)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("id", CHEAP)
def test_verdict_does_not_depend_on_the_seed(id, seed):
    result = verify(id, seed=seed, quick=True)
    assert result.ok, str(result)


@pytest.mark.full
@pytest.mark.parametrize("id", list_claims())
def test_claim_thoroughly(id):
    """With all samples, and another seed."""
    result = verify(id, seed=4)
    assert result.ok, str(result)


@pytest.mark.parametrize("id", list_claims())
def test_claim_is_complete(id):
    known = find_claim(id)
    assert known.statement.endswith(".") and known.title and known.cited
    assert known.mutants or any(find_claim(other).mutants for other in known.see), "nothing wrong is caught anywhere"
    assert all(other in REGISTRY for other in known.see)
    text = explain(id)
    assert text.startswith(f"{id}: ") and known.cited.split()[0] in text and repr(text) == str(text)
    if known.bibtex:
        assert re.search(r"@\w+\{", text)
    if known.of is not None:
        assert "theory.bounds." in text


def test_same_seed_same_numbers():
    first, second = (verify("qsgd.variance", seed=5, quick=True) for _ in range(2))
    assert first.measured == second.measured and first.interval == second.interval
    assert first.measured != verify("qsgd.variance", seed=6, quick=True).measured


def test_public_names_and_printing():
    result = th.verify("topk.contraction", quick=True)
    assert result.verdict == "holds" and result.predicted == 0.99 and result.tightness == pytest.approx(1.0)
    text = str(result)
    assert "topk.contraction: holds (tight)" in text and "mutant caught" in text
    assert "qsgd.variance" in th.list_claims() and "\\le" in str(th.explain("qsgd.variance"))


def test_unknown_claim_names_the_nearest():
    for function in (verify, explain, find_claim):
        with pytest.raises(ValueError, match=r"id: got 'qsgd.varience', allowed: .*qsgd\.variance"):
            function("qsgd.varience")


# --- the rules --------------------------------------------------------------------------------------------------------


def interval(low, high):
    return Interval((low + high) / 2, low, high, samples=100)


RULES = [
    (identity("", 1.0 + 1e-13, 1.0), "holds"),
    (identity("", 1.0 + 1e-11, 1.0), "fails"),
    (identity("", 1e-13, 0.0), "holds"),
    (identity("", math.nan, 0.0), "fails"),
    (equality("", interval(0.95, 1.05), 1.0), "holds"),
    (equality("", interval(0.85, 1.1), 1.0), "undecided"),  # wider than 20 %: not an equality
    (equality("", interval(-0.5, 0.5), 0.0), "holds"),
    (equality("", interval(1.01, 1.1), 1.0), "fails"),
    (upper("", interval(0.8, 0.99), 1.0), "holds"),
    (upper("", interval(0.8, 1.01), 1.0), "undecided"),
    (upper("", interval(1.01, 1.2), 1.0), "fails"),
    (upper("", interval(0.8, 0.9), 1.0, trivial=0.95), "vacuous"),
    (upper("", interval(0.8, 0.9), 1.0, trivial=1.05), "holds"),
    (upper("", interval(1.1, 1.2), 1.0, trivial=0.95), "fails"),
    (upper("", exactly(math.inf), 1.0), "fails"),
    (lower("", interval(1.01, 1.2), 1.0), "holds"),
    (lower("", interval(0.9, 1.2), 1.0), "undecided"),
    (lower("", interval(0.8, 0.9), 1.0), "fails"),
    (lower("", interval(1.1, 1.2), 1.0, trivial=1.05), "vacuous"),
    (rate("", interval(-1.05, -0.95), -1.0, 0.1), "holds"),
    (rate("", interval(-1.2, -0.95), -1.0, 0.1), "undecided"),
    (rate("", interval(-0.6, -0.5), -1.0, 0.1), "fails"),
    (rate("", interval(-0.98, -0.92), -1.0, 0.1), "holds loosely"),  # without the exponent
    (rate("", interval(-1.15, -0.95), -1.0, 0.2), "undecided"),  # with -1.1, too
    (rate("", interval(-0.43, -0.402), -0.5, 0.25), "holds loosely"),  # nearer to -1/3 than a rate may be
    (rate("", interval(-0.385, -0.355), -0.5, 0.25), "holds loosely"),
    (rate("", interval(-0.93, -0.85), -1.0, 0.1), "undecided"),
    (rate("", interval(-1.06, -0.95), -1.0, 0.05), "undecided"),  # asked for more
    (limit("", -0.999, -1.0, 0.05), "holds"),
    (limit("", -0.9, -1.0, 0.05), "fails"),
    (equality("", Interval(0.0, -math.inf, math.inf, samples=9), 0.0), "holds"),  # samples that are all equal
    (equality("", Interval(0.1, -math.inf, math.inf, samples=9), 0.0), "fails"),
]


@pytest.mark.parametrize("check, verdict", RULES)
def test_rules(check, verdict):
    assert judge(check) == verdict


def test_the_worst_check_decides():
    holds, refuted = (equality("", interval(*ends), 1.0) for ends in ((0.95, 1.05), (2.0, 3.0)))
    undecided = upper("", interval(0.5, 1.5), 1.0)
    assert overall([holds, holds]) == "holds"
    assert overall([holds, undecided]) == "undecided" and overall([undecided, refuted]) == "fails"


# --- a claim of one's own ---------------------------------------------------------------------------------------------


@pytest.fixture
def own():
    """Register claims, and forget them afterwards."""
    before = dict(registered())
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def gamble(context):
    yield equality(
        "share of heads", np.random.default_rng(context.stream()).random(context.samples(4000)) < context.subject, 0.5
    )


def facts(**changes):
    return dict(title="A coin", statement="It is fair.", source="the mint", kind="identity", subject=0.5) | changes


def test_a_claim_states_the_part_of_the_record_that_is_named_as_it_is(own):
    named = {claim.statement.casefold() for claim in registered().values()}
    for name in bounds.__all__:
        formula = getattr(bounds, name)
        for part in parts(formula) if hasattr(formula, "theorem") else ():
            one = theorem(formula, part)
            own_words = one.statement != theorem(formula).statement and part not in words_of(formula)
            assert not own_words or one.statement.casefold() in named, f"{name} ({part}): no claim has this part"
    assert find_claim("qsgd.unbiased").statement == theorem(bounds.qsgd_variance, "unbiased").statement
    assert find_claim("block.contraction").title != find_claim("randk.contraction").title  # of one formula
    alike = dict(of=bounds.qsgd_variance, subject=0.5, mutants={"bent": 0.7})
    assert claim("coin.unbiased", **alike)(gamble).title == "QSGD is unbiased"
    assert claim("coin.variance", **alike)(gamble).statement == theorem(bounds.qsgd_variance).statement


def words_of(formula) -> set:
    """The words that arguments of a formula may be."""
    return {word for one in formula.domain.arguments for each in one.conditions for word in each.words}


def test_the_code_of_a_claim_is_the_statement_that_makes_it_also_by_a_law():
    for id in ("qsgd.variance", "frontier.ef21", "mechanism.langevin", "sgd.weighted-average", "adam.step"):
        assert id in find_claim(id).code and "def _law" not in find_claim(id).code, id
        assert find_claim(id).code.count("\n") < 45, id


def test_a_claim_from_outside(own):
    claim("coin.fair", **facts(mutants={"bent": 0.7}))(gamble)
    result = verify("coin.fair")
    assert result.ok and result.mutants == {"bent": "caught"} and "coin.fair" in list_claims()
    table = ledger([result, verify("qsgd.bits.theorem-3.4", quick=True)])
    head, rule, first, second = table.splitlines()
    assert head.split()[0] == "claim" and set(rule) == {"-"}
    assert first.split()[0] == "coin.fair" and "1/1" in first and "fails (in print)" in second


def test_a_surviving_mutant_raises_the_alarm(own):
    claim("coin.loose", **facts(mutants={"hardly bent": 0.5001}))(gamble)
    result = verify("coin.loose")
    assert result.mutants == {"hardly bent": "survived"} and result.verdict == "holds" and not result.ok
    assert not result.ok and exit_code([result]) == 1 and "mutant survived: hardly bent" in ledger([result])


def test_a_false_claim_raises_the_alarm_unless_it_is_to_be_refuted(own):
    claim("coin.false", **facts(subject=0.7, mutants={"bent": 0.9}))(gamble)
    assert verify("coin.false").verdict == "fails" and exit_code([verify("coin.false")]) == 1
    claim("coin.quoted", **facts(subject=0.7, refuted="quoted", see=("qsgd.variance",)))(gamble)
    result = verify("coin.quoted")
    assert result.ok and exit_code([result]) == 0
    assert "fails, as expected (quoted)" in str(result) and result.as_dict()["refuted"] == "quoted"


def test_a_statement_in_print_is_quoted_from_a_source_that_was_read():
    refuted = [find_claim(id) for id in list_claims() if find_claim(id).refuted]
    assert {known.refuted for known in refuted} == {"in print", "quoted", "reading", "question"}
    for known in refuted:
        if known.refuted == "in print":
            assert known.quote and source_known(known.source) == "read", known.id
        if known.refuted == "quoted":
            assert not known.quote and source_known(known.source) != "read", known.id
        if known.refuted == "reading":  # the page says that the sentence is the authors'
            assert known.quote and "our question" not in known.source, known.id
        if known.refuted == "question":
            assert not known.quote and known.source.startswith("our question"), known.id
        assert known.id.endswith(".printed") <= (known.refuted == "in print"), known.id
        assert all(not find_claim(other).refuted for other in known.see), known.id
    texts = {known.id: known.refuted for known in refuted}
    assert texts["sign.l2.contraction"] == "question" and texts["qsgd.gradient-noise.reading"] == "reading"


def test_it_is_known_how_each_source_was_read():
    assert {fields(key)["known"] for key in entries()} == {"read", "quoted", "remembered"}
    assert source_known("alistarh2017qsgd") == "read" and source_known("stich2018sparsified") == "quoted"
    assert source_known("max1960quantizing") == source_known("nobody1999") == "remembered"
    text = " ".join(str(explain("memsgd.theorem")).split())
    assert "known read indirectly: in a talk, a transcript" in text
    assert "in the text Moreover, QSGD requires" in " ".join(str(explain("qsgd.bits.theorem-3.4")).split())


def test_a_claim_without_mutants_is_refused(own):
    with pytest.raises(ValueError, match="^mutants: "):
        claim("coin.sure", **facts())
    with pytest.raises(ValueError, match="^kind: "):
        claim("coin.sure", **facts(kind="sure", mutants={"bent": 0.7}))
    with pytest.raises(ValueError, match="^refuted: "):
        claim("coin.sure", **facts(refuted="printed", see=("qsgd.variance",)))
    with pytest.raises(ValueError, match="^quote: "):
        claim("coin.sure", **facts(refuted="in print", see=("qsgd.variance",)))
    with pytest.raises(ValueError, match="^bibtex: "):
        claim("coin.sure", **facts(bibtex="nobody1999", mutants={"bent": 0.7}))
    with pytest.raises(ValueError, match="^id: "):
        claim("qsgd.variance", **facts(mutants={"bent": 0.7}))(gamble)


@pytest.mark.parametrize(
    "field", ["title", "statement", "kind", "latex", "attained", "proof", "source", "source_known"]
)
def test_a_claim_may_not_say_again_what_the_record_of_its_formula_says(own, field):
    with pytest.raises(ValueError, match=f"^{field}: got one for 'coin.sure', allowed: none"):
        claim("coin.sure", of=bounds.qsgd_variance, subject=1, mutants={"two": 2}, **{field: "derived"})
    record = theorem(bounds.qsgd_variance)
    known = claim("coin.sure", of=bounds.qsgd_variance, subject=1, mutants={"two": 2})(gamble)
    assert (known.title, known.statement, known.kind) == (record.title, record.statement.rstrip(), record.kind)


def test_no_two_claims_state_the_same():
    said = {}
    for id in list_claims():
        said.setdefault((find_claim(id).statement, find_claim(id).title), []).append(id)
    assert [ids for ids in said.values() if len(ids) > 1] == []
