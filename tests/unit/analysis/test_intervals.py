import numpy as np

from pindiag.analysis.intervals import intersection, length, outside, shared, union

NONE = np.empty((0, 2))


def test_a_union_has_no_overlaps():
    found = union(np.array([[5.0, 6.0], [0.0, 3.0], [1.0, 2.0], [2.5, 4.0]]))
    assert found.tolist() == [[0.0, 4.0], [5.0, 6.0]]
    assert union(found, gap=1.0).tolist() == [[0.0, 6.0]]
    assert length(found) == 5.0
    assert len(union(NONE)) == 0


def test_what_two_unions_share():
    one, other = np.array([[0.0, 4.0], [5.0, 6.0]]), np.array([[3.0, 5.5]])
    assert intersection(one, other).tolist() == [[3.0, 4.0], [5.0, 5.5]]
    assert shared(one, other) == shared(other, one) == 1.5
    assert shared(one, NONE) == 0.0


def test_spans_that_touch_share_nothing():
    assert len(intersection(np.array([[0.0, 1.0]]), np.array([[1.0, 2.0]]))) == 0


def test_what_a_union_leaves():
    found = np.array([[-5.0, 1.0], [3.0, 4.0], [9.0, 20.0], [30.0, 31.0]])
    assert outside(found, 0.0, 10.0).tolist() == [[1.0, 3.0], [4.0, 9.0]]
    assert outside(NONE, 0.0, 10.0).tolist() == [[0.0, 10.0]]
    assert len(outside(np.array([[0.0, 10.0]]), 0.0, 10.0)) == 0


def test_intersections_agree_with_counting_moments():
    random = np.random.default_rng(3)
    for _ in range(20):
        one, other = (
            union(np.sort(random.integers(0, 60, (count, 2)), axis=1).astype(float))
            for count in random.integers(1, 9, 2)
        )
        moments = np.arange(0.5, 60)
        both = [all(((u[:, 0] < m) & (m < u[:, 1])).any() for u in (one, other)) for m in moments]
        assert shared(one, other) == sum(both)
