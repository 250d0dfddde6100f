"""Spans: only maskable tokens, within the bounds, something hidden and something seen, every arrangement equally likely."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, DataError
from jepa_nb.masking.spans import sample_spans


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.booleans(), min_size=9, max_size=9).filter(lambda row: sum(row) >= 2), min_size=1, max_size=8),
       st.integers(0, 2**20), st.integers(1, 6), st.integers(1, 12))
def test_any_pattern_of_maskable_tokens_is_respected(rows, seed, most_spans, longest):
    maskable = torch.tensor(rows)
    mask = sample_spans(maskable, seeds.generator(seed), n_spans=(1, most_spans), span_length=(1, longest))
    assert mask.shape == maskable.shape and mask.dtype == torch.bool
    assert not (mask & ~maskable).any()
    assert mask.any(1).all() and (maskable & ~mask).any(1).all()
    for hidden, may in zip(mask, maskable):
        runs = [sum(group) for value, group in itertools.groupby(hidden[may].int().tolist()) if value]
        assert len(runs) <= most_spans and sum(runs) <= most_spans * longest


def arrangements(tokens: int, spans: tuple[int, ...]) -> list[tuple[bool, ...]]:
    """Every way to lay spans of these lengths, in either order, on a row without overlap."""
    found = []
    for starts in itertools.permutations(range(tokens), len(spans)):
        covered = [start + i for start, length in zip(starts, spans) for i in range(length)]
        if len(set(covered)) == len(covered) and max(covered) < tokens:
            found.append(tuple(i in covered for i in range(tokens)))
    return found


def test_every_arrangement_of_two_spans_is_equally_likely():
    tokens, rows = 6, 20_000
    expected: Counter = Counter()
    for spans in itertools.product((1, 2), repeat=2):
        ways = arrangements(tokens, spans)
        for way in ways:
            expected[way] += 1 / len(ways) / 4
    mask = sample_spans(torch.ones(rows, tokens, dtype=torch.bool), seeds.generator(0), n_spans=(2, 2), span_length=(1, 2))
    seen = Counter(map(tuple, mask.tolist()))
    assert set(seen) <= set(expected)
    ways = sorted(expected)
    assert chisquare([seen[w] for w in ways], [rows * expected[w] for w in ways]).pvalue > 1e-3


def test_lengths_and_numbers_of_spans_are_uniform():
    rows = torch.ones(12_000, 40, dtype=torch.bool)
    lengths = sample_spans(rows, seeds.generator(1), n_spans=(1, 1)).sum(1)
    assert chisquare(torch.bincount(lengths, minlength=6)[1:].numpy()).pvalue > 1e-3
    numbers = sample_spans(rows, seeds.generator(2), span_length=(1, 1)).sum(1)
    assert chisquare(torch.bincount(numbers, minlength=6)[1:].numpy()).pvalue > 1e-3


def test_every_maskable_token_of_a_padded_row_is_reached_and_no_other():
    maskable = torch.zeros(3_000, 16, dtype=torch.bool)
    maskable[:, 1:11] = True
    share = sample_spans(maskable, seeds.generator(0)).float().mean(0)
    assert (share[1:11] > 0.2).all() and (share[1:11] < 0.9).all()
    assert share[0] == 0 and share[11:].sum() == 0


def test_spans_that_would_hide_a_whole_row_leave_one_token_at_any_place():
    mask = sample_spans(torch.ones(2_000, 4, dtype=torch.bool), seeds.generator(0), n_spans=(5, 5), span_length=(5, 5))
    assert (mask.sum(1) == 3).all()
    assert mask[:, 0].any() and not mask[:, 0].all() and mask[:, 3].any() and not mask[:, 3].all()


def test_equal_generators_give_equal_spans():
    rows = torch.ones(8, 20, dtype=torch.bool)
    assert torch.equal(sample_spans(rows, seeds.generator(5)), sample_spans(rows, seeds.generator(5)))
    assert not torch.equal(sample_spans(rows, seeds.generator(5)), sample_spans(rows, seeds.generator(6)))


def test_a_row_too_short_and_an_empty_range_are_refused():
    rows = torch.ones(3, 5, dtype=torch.bool)
    rows[1, 1:] = False
    with pytest.raises(DataError, match="row 1 has 1 maskable"):
        sample_spans(rows, seeds.generator(0))
    for bad in ({"n_spans": (0, 2)}, {"span_length": (3, 2)}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            sample_spans(torch.ones(1, 5, dtype=torch.bool), seeds.generator(0), **bad)
