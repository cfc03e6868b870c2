import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats

from pindiag.stats import Rate, compare, differ, geometric_mean, holm, noise_floor, paired_ratios, unpaired


def test_interval_is_the_t_interval_of_the_logs():
    values = [90.0, 100.0, 130.0, 95.0]
    mean = geometric_mean(values)
    expected = scipy_stats.t.interval(0.95, 3, loc=np.mean(np.log(values)), scale=scipy_stats.sem(np.log(values)))
    assert mean.value == pytest.approx(math.exp(np.mean(np.log(values))))
    assert mean.ci95 == pytest.approx(tuple(np.exp(expected)))
    assert mean.half_width == pytest.approx((expected[1] - expected[0]) / 2)


def test_p_is_that_of_a_t_test_of_the_logs():
    ratios = [1.02, 1.1, 1.07, 0.99, 1.05]
    assert geometric_mean(ratios).p == pytest.approx(scipy_stats.ttest_1samp(np.log(ratios), 0).pvalue)


def test_two_values_have_no_interval():
    mean = geometric_mean([100.0, 110.0])
    assert (mean.ci95, mean.p, mean.half_width, mean.count) == (None, None, None, 2)


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0]])
def test_needs_positive_values(values):
    with pytest.raises(ValueError, match="positive"):
        geometric_mean(values)


def test_equal_values_have_an_interval_of_no_width():
    assert geometric_mean([2.0] * 4).ci95 == pytest.approx((2.0, 2.0))
    assert geometric_mean([1.0] * 4).p == 1.0
    assert geometric_mean([2.0] * 4).p == 0.0


def test_holm_by_hand():
    corrected = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert corrected == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_ratios_are_formed_within_rounds():
    rates = [
        *(Rate(1, trial, value) for trial, value in (("base", 80.0), ("base", 125.0), ("fast", 150.0))),
        *(Rate(2, trial, value) for trial, value in (("base", 10.0), ("base", 10.0), ("fast", 20.0))),
        Rate(3, "fast", 999.0),
    ]
    assert paired_ratios(rates, "base") == {"fast": pytest.approx([1.5, 2.0])}


def test_a_common_drift_cancels():
    rates = [
        Rate(number, trial, 100.0 * factor / number)
        for number in range(1, 7)
        for trial, factor in (("base", 1), ("fast", 1.3))
    ]
    assert compare(rates, "base")["fast"].ci95 == pytest.approx((1.3, 1.3))


def test_compare_corrects_over_all_that_are_compared():
    generator = np.random.default_rng(0)
    rates = [
        Rate(number, name, float(generator.lognormal(0, 0.05)))
        for number in range(6)
        for name in ("base", "a", "b", "c")
    ]
    alone = geometric_mean(paired_ratios(rates, "base")["a"]).p
    assert alone <= compare(rates, "base")["a"].p <= min(3 * alone, 1.0)


def test_noise_floor_needs_three_rounds_of_two():
    rates = [Rate(number, "base", value) for number in (1, 2) for value in (100.0, 104.0)]
    assert noise_floor([*rates, Rate(3, "base", 100.0), Rate(3, "other", 50.0)], "base") == (None, 2)


def test_noise_floor_counts_drift_within_rounds_as_noise():
    rates = [Rate(number, "base", value) for number in range(6) for value in (100.0, 110.0)]
    ratio, rounds = noise_floor(rates, "base")
    assert rounds == 6
    assert ratio == pytest.approx(math.exp(scipy_stats.t.ppf(0.975, 6) * math.log(1.1) / math.sqrt(6)))


def _sweep(generator, rounds, truth):
    """Rounds with a drift common to all blocks, 3 % noise, and 5 % of blocks slowed by up to a fifth."""
    rates = []
    for number in range(rounds):
        drift = generator.lognormal(0, 0.2)
        for trial in ("base", "base", "other"):
            slowed = generator.uniform(0.8, 1.0) if generator.random() < 0.05 else 1.0
            value = 1000 * drift * generator.lognormal(0, 0.03) * slowed * (truth if trial == "other" else 1)
            rates.append(Rate(number, trial, float(value)))
    return rates


@pytest.mark.parametrize("rounds", [4, 6, 10])
def test_intervals_cover_the_truth(rounds):
    generator = np.random.default_rng(rounds)
    trials = 1500
    covered = 0
    for _ in range(trials):
        low, high = compare(_sweep(generator, rounds, 1.25), "base")["other"].ci95
        covered += low <= 1.25 <= high
    assert 0.90 <= covered / trials <= 0.98


def test_noise_floor_is_rarely_passed_by_an_equal_configuration():
    generator = np.random.default_rng(3)
    passed = 0
    for _ in range(1000):
        rates = _sweep(generator, 6, 1.0)
        ratio = compare(rates, "base")["other"].value
        passed += abs(math.log(ratio)) > math.log(noise_floor(rates, "base")[0])
    assert passed / 1000 <= 0.08  # 5 % without outliers


def _name(block):
    blocking = f"-nb{int(block['nb'])}" if block["pin"] else ""
    return f"nw{block['nw']}-pin{int(block['pin'])}{blocking}"


def test_a_recorded_sweep_of_an_h200():
    """Four rounds of the article's scenario: 1.43 × (1.11-1.85), the least p 0.13 after eleven comparisons."""
    recorded = json.loads((Path(__file__).parents[1] / "data" / "h200" / "live_mlp.json").read_text())["blocks"]
    rates = [Rate(block["round"], _name(block), block["sps"]) for block in recorded if block["kind"] == "full"]
    ratios = compare(rates, "nw4-pin0")
    best = max(ratios, key=lambda trial: ratios[trial].value)
    assert best == "nw0-pin1-nb1"
    assert len(ratios) == 11
    assert ratios[best].value == pytest.approx(1.43, abs=0.005)
    assert ratios[best].ci95 == pytest.approx((1.11, 1.85), abs=0.005)
    assert min(ratio.p for ratio in ratios.values()) == pytest.approx(0.13, abs=0.005)
    assert noise_floor(rates, "nw4-pin0") == (None, 0)


def test_an_unpaired_ratio_is_welchs():
    base, new = [100.0, 104.0, 97.0, 101.0], [120.0, 118.0, 131.0]
    mean = unpaired(base, new)
    theirs = scipy_stats.ttest_ind(np.log(new), np.log(base), equal_var=False)
    bounds = theirs.confidence_interval(0.95)
    assert mean.value == pytest.approx(math.exp(np.mean(np.log(new)) - np.mean(np.log(base))))
    assert mean.ci95 == pytest.approx((math.exp(bounds.low), math.exp(bounds.high)))
    assert mean.p == pytest.approx(theirs.pvalue)
    assert mean.count == 3


def test_an_unpaired_ratio_of_few_values_has_no_interval():
    mean = unpaired([2.0, 2.0], [1.0, 1.0, 1.0])
    assert (mean.value, mean.ci95, mean.p) == (pytest.approx(0.5), None, None)


def test_an_unpaired_ratio_without_spread_is_exact():
    mean = unpaired([2.0] * 3, [3.0] * 3)
    assert mean.ci95 == pytest.approx((1.5, 1.5))
    assert mean.p == 0


@pytest.mark.parametrize("sides", [([], [1.0]), ([1.0], [0.0])])
def test_an_unpaired_ratio_needs_positive_values(sides):
    with pytest.raises(ValueError, match="on both sides"):
        unpaired(*sides)


@pytest.mark.parametrize("seed", range(5))
def test_two_means_differ_where_welch_says_so(seed):
    draw = np.random.default_rng(seed)
    one, other = (np.exp(draw.normal(shift, 0.05 * (seed + 1), 4 + seed)) for shift in (0.0, 0.1))
    apart = scipy_stats.ttest_ind(np.log(one), np.log(other), equal_var=False).pvalue < 0.05
    assert differ(geometric_mean(list(one)), geometric_mean(list(other))) is bool(apart)


def test_two_means_may_differ_by_little_and_still_surely():
    sure, near = geometric_mean([1.0, 1.0, 1.0]), geometric_mean([1.01, 1.01, 1.01])
    assert (differ(sure, near), differ(sure, sure)) == (True, False)
    assert differ(sure, geometric_mean([1.0, 2.0])) is None
