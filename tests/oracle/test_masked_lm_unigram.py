"""The baseline that the masked LM is held against: cross-entropy and accuracy of the training tokens' frequencies.

1. Both agree with a count by hand over the tokens. 2. Special tokens and padding don't count. 3. It is the best constant
prediction: no other mixture does better on the training tokens. 4. A trained masked LM is restored exactly.
"""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from jepa_nb.device import resolve
from jepa_nb.experiments.paradox import masked_lm
from jepa_nb.experiments.paradox.config import TIERS


@pytest.fixture(scope="module")
def training():
    return masked_lm.Training(TIERS["smoke"].masked_lm, resolve("cpu"))


def words(tokens) -> list[int]:
    return [token for ids, special in zip(tokens.ids.tolist(), tokens.special.tolist())
            for token, left_out in zip(ids, special) if not left_out]


def test_unigram_loss_and_accuracy_equal_a_count_by_hand(training):
    seen, held = Counter(words(training.tokens["train"])), words(training.tokens["val"])
    size = training.tokenizer.get_vocab_size()
    total = sum(seen.values()) + size
    loss = -sum(math.log((seen[token] + 1) / total) for token in held) / len(held)
    likeliest = max(range(size), key=lambda token: seen[token])
    accuracy = sum(token == likeliest for token in held) / len(held)
    assert training._unigram() == pytest.approx((loss, accuracy), abs=1e-12)


def test_special_tokens_do_not_count(training):
    special = {training.tokenizer.token_to_id(name) for name in ("[PAD]", "[CLS]", "[SEP]")}
    assert not set(words(training.tokens["train"])) & special
    before = training._unigram()
    tokens = training.tokens["val"]
    kept = tokens.ids.clone()
    tokens.ids[tokens.special] = int(words(tokens)[0])
    try:
        assert training._unigram() == before
    finally:
        tokens.ids.copy_(kept)


def test_no_other_constant_prediction_is_better_on_the_training_tokens(training):
    size = training.tokenizer.get_vocab_size()
    counts = torch.bincount(torch.tensor(words(training.tokens["train"])), minlength=size).double()
    share = counts / counts.sum()
    entropy = float(torch.special.entr(share).sum())
    smoothed = (counts + 1) / (counts + 1).sum()
    assert entropy <= float(-(share * smoothed.log()).sum()) < entropy + 0.05
    uniform = math.log(size)
    assert training._unigram()[0] < uniform


def test_rows_and_restored_weights_are_those_of_the_training(training, tmp_path):
    rows = training.run(tmp_path, "masked LM")
    last = {row["metric"]: row["value"] for row in rows if row["step"] == training.config.steps}
    first = {row["metric"]: row["value"] for row in rows if row["step"] == 0}
    assert set(last) == {"masked_lm_loss", "masked_lm_accuracy", "unigram_loss", "unigram_accuracy"}
    assert last["unigram_loss"] == first["unigram_loss"] and last["masked_lm_loss"] != first["masked_lm_loss"]
    assert first["masked_lm_loss"] == pytest.approx(math.log(training.tokenizer.get_vocab_size()), rel=0.05)
    again = masked_lm.restored(training.config, training.final_tensors()).eval()
    ids = training.tokens["val"].ids[:4]
    asked = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        assert torch.equal(again(ids, None, asked), training.model.eval()(ids, None, asked))
