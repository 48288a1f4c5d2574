"""The plane keeps the most variance there is to keep, and says how much."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.projection import Answer, answer, principal_plane
from tests.model.common import load


@pytest.fixture(scope="module")
def cloud():
    random = np.random.default_rng(0)
    return random.normal(size=(40, 16)) @ random.normal(size=(16, 16)) + random.normal(size=16)


def variance(vectors):
    return ((vectors - vectors.mean(axis=0)) ** 2).sum()


def test_axes_are_at_right_angles_and_of_length_1(cloud):
    axes = principal_plane(cloud).axes
    assert np.allclose(axes @ axes.T, np.eye(2), atol=1e-12)


def test_kept_is_the_variance_in_the_plane(cloud):
    plane = principal_plane(cloud)
    seen = plane.put(cloud)
    assert np.allclose(plane.explained, seen.var(axis=0) / cloud.var(axis=0).sum(), atol=1e-12)
    singular = np.linalg.svd(cloud - cloud.mean(axis=0), compute_uv=False)
    assert np.allclose(plane.explained, (singular**2 / (singular**2).sum())[:2], atol=1e-12)


def test_no_other_plane_keeps_more(cloud):
    best = variance(principal_plane(cloud).put(cloud))
    random = np.random.default_rng(1)
    for size in (1.0, 0.01):  # any plane, and those close by
        for _ in range(200):
            near = principal_plane(cloud).axes * (size < 1) + size * random.normal(size=(2, 16))
            other = np.linalg.qr(near.T)[0].T
            assert variance(cloud @ other.T) <= best * (1 + 1e-12)


def test_equals_pytorchs_principal_components_up_to_sign(cloud):
    torch.manual_seed(0)
    _, singular, axes = torch.pca_lowrank(torch.from_numpy(cloud), q=16, niter=8)
    plane = principal_plane(cloud)
    assert np.allclose(np.abs((plane.axes * axes.numpy().T[:2]).sum(axis=1)), 1, atol=1e-9)
    assert np.allclose(plane.explained, (singular**2 / (singular**2).sum()).numpy()[:2], atol=1e-9)
    mirrored = principal_plane(-cloud)
    assert np.allclose(mirrored.axes, plane.axes)  # the sign does not depend on chance
    for axis in plane.axes:  # but on its largest number
        assert axis[np.abs(axis).argmax()] > 0


def test_what_lies_in_a_plane_through_zero_loses_nothing():
    random = np.random.default_rng(2)
    flat = random.normal(size=(9, 2)) @ random.normal(size=(2, 32))
    plane = principal_plane(flat)
    seen = plane.put(flat)
    assert plane.explained.sum() == pytest.approx(1)
    assert np.allclose(seen @ seen.T, flat @ flat.T)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 1), (2, 5), (7, 1)])
def test_too_little_for_a_plane_is_still_a_picture(shape):
    vectors = np.random.default_rng(3).normal(size=shape)
    for given in (vectors, np.zeros(shape), np.ones(shape)):
        plane = principal_plane(given)
        assert plane.axes.shape == (2, shape[1]) and plane.put(given).shape == (shape[0], 2)
        assert np.isfinite(plane.axes).all() and plane.explained.sum() == pytest.approx(1)
        if min(shape) == 1:  # there is no second direction
            assert not plane.axes[1].any()


@pytest.mark.parametrize("name", ["en-de", "reviews"])
def test_scores_in_the_plane_miss_what_lies_outside_it(name):
    trace = load(name).trace("A dog runs on the beach.")
    for kind in trace.attention:
        query, key = trace.query[kind][0, 0], trace.key[kind][0, 0]
        plane = principal_plane(np.concatenate([query, key]))
        outside = np.eye(query.shape[1]) - plane.axes.T @ plane.axes
        scores = trace.scores[kind][0][0]
        for row, weights in enumerate(trace.attention[kind][0, 0]):
            found = answer(plane, query[row], key, scores[row], weights)
            missed = key @ outside @ query[row] / np.sqrt(query.shape[1])
            assert np.allclose(found.in_plane + missed, scores[row], atol=1e-5)
            assert np.allclose(found.off(), np.abs(missed)[weights > 0], atol=1e-5)
            may = weights > 0
            parts = torch.from_numpy(found.in_plane[may]).softmax(dim=-1).numpy()
            moved = np.maximum(parts - weights[may], 0).sum()
            assert found.total_variation() == pytest.approx(moved, abs=1e-6)


def test_a_query_that_may_look_at_nothing_is_answered():
    none = Answer(np.ones(3), np.zeros(3), np.zeros(3))
    assert none.total_variation() == 0 and none.off().size == 0


def test_a_constant_on_all_scores_moves_no_weight():
    scores = np.array([1.0, 2.0, 3.0])
    weights = np.exp(scores) / np.exp(scores).sum()
    assert Answer(scores, scores + 5, weights).total_variation() == pytest.approx(0, abs=1e-12)
