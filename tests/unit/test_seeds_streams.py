"""Named random streams.

1. A stream is the same number on every machine and in every process. 2. Streams of other seeds, names or orders differ.
3. Generators of one stream draw the same, those of two streams are uncorrelated. 4. ``scoped`` leaves torch's global
generator as it was, also after an error, and ignores what it was before.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from jepa_nb import seeds

PINNED = {(0,): 2033344993903900207, (3, "masks", 120): 564328883281452932, (3, "corpus"): 1034801560203585585,
          (-1, "a"): 3123381912258472406}


@pytest.mark.parametrize(("path", "number"), PINNED.items())
def test_a_stream_is_a_fixed_number(path, number):
    assert seeds.stream(*path) == number
    assert 0 <= number < 2 ** 63


def test_a_stream_does_not_depend_on_the_process(project):
    code = "from jepa_nb import seeds; print(seeds.stream(3, 'masks', 120))"
    told = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True,
                          env={"PYTHONHASHSEED": "17"})
    assert int(told.stdout) == PINNED[3, "masks", 120]


def test_seeds_names_and_order_make_other_streams():
    names = ((), ("a",), ("b",), ("a", "b"), ("b", "a"), ("ab",), ("a", 1), ("a", 11))
    paths = [(seed, *path) for seed in range(5) for path in names]
    paths += [(0, "masks", step) for step in range(1000)]
    assert len({seeds.stream(*path) for path in paths}) == len(paths)


def test_generators_repeat_their_stream_and_no_other():
    draws = {(kind, path): draw for path in ((1, "x"), (2, "x"), (1, "y")) for kind, draw in (
        ("torch", torch.randn(4000, generator=seeds.generator(*path)).numpy()),
        ("numpy", seeds.numpy_generator(*path).standard_normal(4000)))}
    again = torch.randn(4000, generator=seeds.generator(1, "x")).numpy()
    assert np.array_equal(again, draws["torch", (1, "x")])
    assert np.array_equal(seeds.numpy_generator(1, "x").standard_normal(4000), draws["numpy", (1, "x")])
    correlation = np.corrcoef(list(draws.values())) - np.eye(len(draws))
    assert np.abs(correlation).max() < 0.08  # five standard errors


def test_scoped_draws_from_its_stream_and_restores_the_global_generator():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with seeds.scoped(1, "initialisation"):
        first = torch.randn(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    with seeds.scoped(1, "initialisation"):
        assert torch.equal(torch.randn(3), first)
    with seeds.scoped(2, "initialisation"):
        assert not torch.equal(torch.randn(3), first)


def test_scoped_restores_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), seeds.scoped(1, "dropout", 3):
        torch.randn(3)
        raise ZeroDivisionError
    assert torch.equal(torch.get_rng_state(), before)
