"""Claims: with the exact density ratio InfoNCE approaches the Gaussians' mutual information from below and stops at its cap;
grouped scoring equals a loop over rows; knowing the position earns nothing once it is conditioned on; pushing the batch before
scoring costs log 2."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import torch

from jepa_nb.metrics.information import FeatureQueue, infonce_from_logits, infonce_mi, published_mi


def gaussian_scores(rows: int, width: int, rho: float, seed: int) -> torch.Tensor:
    """log p(y_j | x_i) - log p(y_j), the positive of each row moved to column 0; (rows, rows)."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    y = rho * x + math.sqrt(1 - rho**2) * torch.randn(rows, width, generator=generator, dtype=torch.float64)
    joint = (y[None] - rho * x[:, None]).square().sum(-1) / (1 - rho**2)
    scores = (y.square().sum(-1)[None] - joint) / 2 - width / 2 * math.log(1 - rho**2)
    shift = (torch.arange(rows)[:, None] + torch.arange(rows)) % rows
    return scores.gather(1, shift)


@pytest.mark.parametrize("width, rho", [(1, 0.5), (2, 0.7), (4, 0.8), (8, 0.6)])
def test_infonce_approaches_the_gaussian_mutual_information_from_below(width, rho):
    truth = -width / 2 * math.log(1 - rho**2)
    found = [infonce_from_logits(gaussian_scores(1000, width, rho, seed)).nats for seed in range(4)]
    error = np.std(found, ddof=1) / 2
    assert np.mean(found) <= truth + 3 * error
    assert np.mean(found) >= truth - 0.06 * truth - 3 * error


def test_infonce_grows_with_the_number_of_negatives_and_stops_at_the_cap():
    truth = -20 / 2 * math.log(1 - 0.95**2)
    scores = gaussian_scores(512, 20, 0.95, seed=0)
    few, many = infonce_from_logits(scores[:, :8]), infonce_from_logits(scores)
    assert few.cap == pytest.approx(math.log(8)) and many.cap == pytest.approx(math.log(512))
    assert few.nats <= few.cap and many.nats <= many.cap < truth
    assert few.nats > 0.99 * few.cap and many.nats > 0.95 * many.cap


def looped_mi(pred, target, groups, sample, temperature, centre, critic):
    gains = []
    means = np.stack([target[groups == g].mean(0) for g in groups])
    scale = ((target - means * centre) ** 2).sum(1).mean()
    for i in range(len(pred)):
        member = groups == groups[i]
        a, b = pred.copy(), target.copy()
        if centre:
            a, b = a - a[member].mean(0), b - b[member].mean(0)
        rivals = [j for j in np.flatnonzero(member) if j != i and sample[j] != sample[i]]
        if not rivals:
            continue
        candidates = b[[i, *rivals]]
        score = candidates @ a[i] / np.linalg.norm(candidates, axis=1) / np.linalg.norm(a[i])
        if critic == "distance":
            score = -((candidates - a[i]) ** 2).sum(1) / scale
        gains.append(math.log(1 + len(rivals)) - scipy.special.logsumexp(score / temperature) + score[0] / temperature)
    return max(0.0, float(np.mean(gains)))


@pytest.mark.parametrize("critic", ["cosine", "distance"])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_grouped_infonce_equals_a_loop_over_rows_for_unequal_groups(critic, centre, temperature):
    generator = np.random.default_rng(0)
    target = generator.normal(size=(60, 8)) + 2
    pred = target + 0.8 * generator.normal(size=target.shape)
    groups, sample = generator.integers(0, 5, 60), generator.integers(0, 20, 60)
    groups[0] = 99  # a group of one has no negatives and says nothing
    found = infonce_mi(torch.tensor(pred), torch.tensor(target), groups=torch.tensor(groups), exclude=torch.tensor(sample),
                       temperature=temperature, centre=centre, critic=critic)
    expected = looped_mi(pred, target, groups, sample, temperature, centre, critic)
    assert found.nats == pytest.approx(expected, rel=1e-10)


def test_the_distance_critic_reaches_the_truth_of_a_gaussian_predictor_where_cosine_cannot():
    # y = x + noise of variance s in one dimension: the log-density ratio is -(y - x)^2 / 2s, and cosine only sees the sign.
    generator = torch.Generator().manual_seed(0)
    x, noise = torch.randn(2, 2000, 1, generator=generator, dtype=torch.float64)
    y = x + 0.2 * noise
    truth = 0.5 * math.log(1 + 1 / 0.04)
    matched = 2 * 0.04 / float((y - y.mean()).square().mean())
    distance = infonce_mi(x, y, critic="distance", temperature=matched)
    assert truth - 0.1 < distance.nats < truth + 0.1
    assert infonce_mi(x, y, temperature=1.0).nats < math.log(2) < distance.nats


def test_knowing_only_the_position_reads_log_positions_unless_it_is_conditioned_on():
    generator = torch.Generator().manual_seed(0)
    positions, samples = 16, 64
    position = torch.arange(positions).repeat(samples)
    code = torch.nn.functional.normalize(torch.randn(positions, 256, generator=generator), dim=1)[position]
    pred = code + 0.001 * torch.randn(len(code), 256, generator=generator)
    target = code + 0.001 * torch.randn(len(code), 256, generator=generator)
    free = infonce_mi(pred, target, temperature=0.05)
    held = infonce_mi(pred, target, temperature=0.05, groups=position, centre=True)
    assert free.nats == pytest.approx(math.log(positions), abs=0.05)
    assert held.nats < 0.05 and held.cap == pytest.approx(math.log(samples))


def test_a_common_offset_hides_information_unless_it_is_centred():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(256, 32, generator=generator)
    assert infonce_mi(x + 10, x + 10).nats < 0.2
    assert infonce_mi(x + 10, x + 10, centre=True).nats > 0.95 * math.log(256)


def test_published_mi_equals_scores_written_out_with_own_entries_left_out():
    generator = np.random.default_rng(2)
    anchor, target, stored = (generator.normal(size=(n, 6)) for n in (5, 5, 30))
    queue = FeatureQueue(30, 6)
    ids = np.arange(30) % 9
    queue.push(torch.tensor(stored), torch.tensor(ids))
    found = published_mi(torch.tensor(anchor), torch.tensor(target), queue, torch.arange(5))
    entropies, caps = [], []
    for i in range(5):
        candidates = np.vstack([target[i], stored[ids != i]])
        logits = candidates @ anchor[i] / np.linalg.norm(candidates, axis=1) / np.linalg.norm(anchor[i]) / 0.1
        entropies.append(scipy.special.logsumexp(logits) - logits[0])
        caps.append(math.log(len(candidates)))
    assert found.ce == pytest.approx(np.mean(entropies), rel=1e-5)
    assert found.cap == pytest.approx(np.mean(caps), rel=1e-12)


def test_pushing_the_batch_before_scoring_costs_log_two_and_masking_by_id_does_not():
    x = torch.eye(64) * 3  # orthogonal, so the positive is picked with certainty at a low temperature
    ids = torch.arange(64)
    queue = FeatureQueue(128, 64)
    queue.push(x, ids)  # the published order: the positive is now among the negatives
    entries, _ = queue.negatives()
    unit = torch.nn.functional.normalize(x, dim=1)
    as_published = infonce_from_logits(torch.cat([(unit * unit).sum(1, keepdim=True), unit @ entries.T], 1) / 0.02)
    assert as_published.ce == pytest.approx(math.log(2), abs=1e-9)
    assert published_mi(x, x, queue, ids, temperature=0.02).ce == pytest.approx(0.0, abs=1e-9)
