"""Claims: an InfoNCE estimate never leaves [0, cap]; shuffled pairs read about zero; rows of one sample never compete; equal
groups are equal; the queue is a ring that never offers a row its own positive and restores bit for bit."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepa_nb.errors import CheckpointError
from jepa_nb.metrics.information import CRITICS, FeatureQueue, equal_groups, infonce_from_logits, infonce_mi, published_mi

quick = settings(deadline=None, max_examples=30)
seeds = st.integers(0, 10_000)


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@quick
@given(seeds, st.integers(2, 40), st.floats(0.01, 10), st.booleans(), st.floats(0, 3), st.sampled_from(CRITICS))
def test_an_estimate_never_leaves_its_bounds(seed, rows, temperature, centre, noise, critic):
    target = draw(seed, rows, 6)
    pred = target + noise * draw(seed + 1, rows, 6)
    found = infonce_mi(pred, target, temperature=temperature, centre=centre, critic=critic)
    assert 0 <= found.nats <= found.cap == pytest.approx(math.log(rows)) and found.ce >= 0
    assert found.nats == max(0.0, found.cap - found.ce)


@quick
@given(seeds, st.booleans(), st.sampled_from(CRITICS))
def test_shuffled_pairs_read_about_zero_within_groups(seed, centre, critic):
    target = draw(seed, 512, 16)
    groups = torch.arange(512) % 8
    shuffled = (torch.arange(512) + 8) % 512  # the neighbour within the same group
    assert infonce_mi(target, target, groups=groups, centre=centre, critic=critic).nats > 3
    assert infonce_mi(target[shuffled], target, groups=groups, centre=centre, critic=critic).nats < 0.05


@quick
@given(seeds, st.sampled_from(CRITICS))
def test_targets_without_variance_read_zero(seed, critic):
    for flat in (torch.zeros(20, 4), torch.full((20, 4), 0.1)):
        for centre in (False, True):
            found = infonce_mi(draw(seed, 20, 4), flat, centre=centre, critic=critic)
            assert found.ce == pytest.approx(found.cap) and found.nats == pytest.approx(0.0, abs=1e-9)


@quick
@given(seeds, st.floats(0.1, 100))
def test_scale_rotation_and_order_change_no_estimate(seed, factor):
    target = draw(seed, 48, 8).double()
    pred = target + draw(seed + 1, 48, 8)
    groups = torch.arange(48) % 3
    turn = torch.linalg.qr(draw(seed + 2, 8, 8).double())[0]
    order = torch.randperm(48, generator=torch.Generator().manual_seed(seed))
    expected = infonce_mi(pred, target, groups=groups).ce
    assert infonce_mi(pred * factor, target, groups=groups).ce == pytest.approx(expected)
    assert infonce_mi(pred @ turn, target @ turn, groups=groups).ce == pytest.approx(expected)
    assert infonce_mi(pred[order], target[order], groups=groups[order]).ce == pytest.approx(expected)


@quick
@given(seeds, st.integers(2, 6))
def test_rows_of_one_sample_never_compete(seed, copies):
    target = draw(seed, 20, 32).repeat(copies, 1)
    sample = torch.arange(20).repeat(copies)
    found = infonce_mi(target, target, temperature=0.02, exclude=sample)
    assert found.cap == pytest.approx(math.log(1 + 19 * copies))
    assert found.nats > 0.95 * found.cap
    assert infonce_mi(target, target, temperature=0.02).ce > math.log(copies) - 1e-6  # duplicates cannot be told apart


@quick
@given(seeds, st.integers(1, 9))
def test_masked_logits_are_no_negatives(seed, masked):
    logits = draw(seed, 6, 10)
    hidden = logits.clone()
    hidden[:, -masked:] = -torch.inf
    if masked == 9:
        hidden[0, -1] = logits[0, -1]
        assert infonce_from_logits(hidden).cap == pytest.approx(math.log(2))
    else:
        assert infonce_from_logits(hidden) == pytest.approx(infonce_from_logits(logits[:, :-masked]))


@quick
@given(seeds, st.integers(2, 6))
def test_equal_groups_are_equal_distinct_and_repeat_under_one_seed(seed, size):
    groups = torch.randint(-3, 5, (80,), generator=torch.Generator().manual_seed(seed))
    index = equal_groups(groups, size, torch.Generator().manual_seed(seed))
    names, counts = groups[index].unique(return_counts=True)
    whole, available = groups.unique(return_counts=True)
    assert counts.tolist() == [size] * len(names) and names.tolist() == whole[available >= size].tolist()
    assert len(index.unique()) == len(index)
    assert index.tolist() == equal_groups(groups, size, torch.Generator().manual_seed(seed)).tolist()


def test_equal_groups_draws_each_row_of_a_group_about_equally_often():
    groups = torch.tensor([0] * 8 + [1] * 3)
    generator = torch.Generator().manual_seed(0)
    hits = torch.stack([equal_groups(groups, 4, generator) for _ in range(800)]).flatten().bincount(minlength=11)
    assert hits[8:].sum() == 0 and hits[:8].sum() == 3200
    assert (hits[:8] - 400).abs().max() < 5 * math.sqrt(800 * 0.25)


@quick
@given(st.integers(1, 12), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_the_queue_holds_the_last_rows_pushed_each_in_its_slot(size, batches):
    queue, pushed = FeatureQueue(size, 2), []
    for count in batches:
        ids = torch.arange(len(pushed), len(pushed) + count)
        queue.push(torch.stack([ids + 1.0, torch.ones(count)], 1), ids)
        pushed += ids.tolist()
    entries, ids = queue.negatives()
    assert sorted(ids.tolist()) == pushed[-size:] and len(queue) == min(size, len(pushed))
    assert all(number % size == slot for slot, number in enumerate(ids.tolist()))
    torch.testing.assert_close(entries[:, 0] / entries[:, 1], ids + 1.0)
    torch.testing.assert_close(entries.norm(dim=1), torch.ones(len(ids)))


@quick
@given(seeds, st.integers(1, 20), st.integers(3, 40))
def test_the_queue_never_offers_a_row_its_own_positive(seed, batch, size):
    ids = torch.randint(0, 8, (batch,), generator=torch.Generator().manual_seed(seed))
    target = torch.nn.functional.one_hot(ids, 10).float()  # one vector for each sample: the positive would score 1
    queue = FeatureQueue(size, 10)
    queue.push(torch.eye(10)[8:], torch.tensor([8, 9]))
    queue.push(target[: size - 2], ids[: size - 2])  # the published order, with room for two others
    found = published_mi(target, target, queue, ids, temperature=0.02)
    assert found.ce < 1e-6 and found.nats == pytest.approx(found.cap)


@quick
@given(seeds, st.integers(1, 10), st.integers(1, 25))
def test_a_restored_queue_continues_bit_for_bit(seed, size, count):
    first = FeatureQueue(size, 3)
    first.push(draw(seed, count, 3), torch.arange(count))
    saved = first.state_dict()
    before = {name: value.clone() for name, value in saved.items()}
    second = FeatureQueue(size, 3)
    second.load_state_dict(saved)
    for queue in (first, second):
        queue.push(draw(seed + 1, 4, 3), torch.arange(100, 104))
    assert all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True))
    assert all(torch.equal(saved[name], before[name]) for name in before)  # a copy, not a view of the ring


def test_a_queue_of_another_size_is_not_loaded():
    with pytest.raises(CheckpointError, match="saved size and width"):
        FeatureQueue(4, 3).load_state_dict(FeatureQueue(5, 3).state_dict())
