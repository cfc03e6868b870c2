"""The distributions against scipy's."""

import math

import pytest
from scipy import special

from pindiag import student

FREEDOMS = (1, 1.5, 2, 3, 4.7, 5, 10, 30, 99.3, 1000)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("value", [-60.0, -4.0, -1.0, -1e-9, 0.0, 0.3, 2.1, 12.0, 60.0])
def test_probabilities(value, freedom):
    assert student.cdf(value, freedom) == pytest.approx(special.stdtr(freedom, value), rel=1e-9)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("probability", [0.001, 0.025, 0.5, 0.6, 0.975, 0.9999])
def test_quantiles(probability, freedom):
    assert student.quantile(probability, freedom) == pytest.approx(
        special.stdtrit(freedom, probability), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize("value", [-8.0, -1.96, 0.0, 0.5, 6.0])
def test_the_normal_distribution(value):
    assert student.normal_cdf(value) == pytest.approx(special.ndtr(value), rel=1e-12)


def test_a_value_beyond_all_is_certain():
    assert (student.cdf(-math.inf, 3), student.cdf(1e300, 3)) == (0.0, 1.0)
