"""The operations of a step, counted from its shapes, equal what torch counts while the step is computed.

1. Forward and backward pass of a small Llama in every layout. 2. More columns with labels cost the head's products and nothing else.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from jepa_nb.experiments.llm_jepa.costs import padded_tokens, step_flops
from jepa_nb.masking.streams import LAYOUTS, Streams, lay_out
from jepa_nb.models.language import tiny_llama
from jepa_nb.training.llm_jepa import JEPATerms, losses

PAIRS = [Streams((1, 2, 3, 4, 5, 6), (-100, -100, -100, 4, 5, 6), (1, 2, 3, 9), (4, 5)),
         Streams((1, 2, 7, 6), (-100, -100, 7, 6), (1, 2, 9), (7,))]


def counted(layout: str) -> tuple[float, float]:
    model = tiny_llama(vocab_size=24, width=16, depth=2, heads=2, max_length=32, seed=0, attention="eager")
    batch = lay_out(PAIRS, layout, pad_id=0)
    with FlopCounterMode(display=False) as counter:
        losses(model, batch, JEPATerms(layout=layout)).total.backward()
    return float(counter.get_total_flops()), step_flops(model.config, batch)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_count_is_torchs_own(layout):
    torchs, ours = counted(layout)
    assert ours == pytest.approx(torchs, rel=0.03)  # the gradient of the first layer's input is not asked for, nor is the rotary table


def test_a_column_with_a_label_costs_one_product_with_the_head():
    model = tiny_llama(vocab_size=24, width=16, depth=1, heads=2, max_length=32, seed=0)
    few, more = (lay_out([Streams((1, 2, 3), labels, (1, 2), (3,))], "separate", pad_id=0) for labels in ((-100, -100, 3), (-100, 2, 3)))
    assert step_flops(model.config, more) - step_flops(model.config, few) == 3 * 2 * 3 * 16 * 24
    assert padded_tokens(few) == few.input_ids.numel()
