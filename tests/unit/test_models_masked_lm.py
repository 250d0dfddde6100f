"""Masked language model: BERT's loss, BERT's corruption, and completions from its own distribution at one position."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import chisquare

from jepa_nb import seeds
from jepa_nb.errors import ConfigError, DataError
from jepa_nb.models.masked_lm import MaskedLM, completions, mlm_batch

VOCAB, MASK_ID, SPECIAL = 30, 4, [0, 1, 2, 3, 4]


def masked_lm() -> MaskedLM:
    with seeds.scoped(0, "mlm"):
        model = MaskedLM.from_sizes(vocab_size=VOCAB, width=32, depth=2, heads=4, max_length=12).eval()
    with torch.no_grad():
        # At initialisation tokens hardly see each other and all words are alike; larger weights make both matter.
        for module in model.lm.bert.encoder.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_(6)
        model.lm.bert.embeddings.word_embeddings.weight.mul_(20)
    return model


def sentences(rows: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(5, VOCAB, (rows, 10), generator=seeds.generator(1))
    lengths = torch.randint(4, 11, (rows, 1), generator=seeds.generator(2))
    attention = torch.arange(10)[None] < lengths
    return ids.masked_fill(~attention, 0), attention


def sample(model: MaskedLM, ids, attention, position, k, **options) -> torch.Tensor:
    return completions(model, ids, attention, position, k, seeds.generator(7), mask_id=MASK_ID, special=SPECIAL, **options)


def distribution(model: MaskedLM, ids: torch.Tensor, attention: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """(B, V) probabilities of ordinary tokens at the masked positions, one row at a time by transformers' own forward."""
    found = []
    for row, place in enumerate(position.tolist()):
        masked = ids[row:row + 1].clone()
        masked[0, place] = MASK_ID
        logits = model.lm(masked, attention_mask=attention[row:row + 1].long()).logits[0, place]
        probs = logits.softmax(0)
        probs[SPECIAL] = 0
        found.append(probs / probs.sum())
    return torch.stack(found).detach()


def test_loss_equals_transformers_and_the_decoder_is_tied():
    model, (ids, attention) = masked_lm(), sentences()
    inputs, labels = mlm_batch(ids, attention, seeds.generator(0), vocab=VOCAB, mask_id=MASK_ID, special=SPECIAL)
    expected = model.lm(inputs, attention_mask=attention.long(), labels=labels).loss
    assert torch.allclose(model.loss(inputs, labels, attention), expected, atol=1e-5)
    assert model.lm.cls.predictions.decoder.weight is model.lm.bert.embeddings.word_embeddings.weight


def test_corruption_is_15_percent_and_80_10_10_on_maskable_tokens_only():
    ids = torch.randint(5, VOCAB, (2_000, 40), generator=seeds.generator(0))
    maskable = torch.ones_like(ids, dtype=torch.bool)
    maskable[:, 0] = False
    inputs, labels = mlm_batch(ids, maskable, seeds.generator(1), vocab=VOCAB, mask_id=MASK_ID, special=SPECIAL)
    asked = labels != -100
    assert (asked.sum(1) == 6).all() and not asked[:, 0].any()
    assert torch.equal(labels[asked], ids[asked]) and torch.equal(inputs[~asked], ids[~asked])
    masked, kept = (inputs == MASK_ID)[asked].float().mean(), (inputs == ids)[asked].float().mean()
    assert abs(masked - 0.8) < 0.015
    assert abs(kept - (0.1 + 0.1 / 25)) < 0.012  # a random token is the right one once in 25
    drawn = inputs[asked & (inputs != MASK_ID) & (inputs != ids)]
    assert chisquare(torch.bincount(drawn, minlength=VOCAB)[5:].numpy()).pvalue > 1e-3 and drawn.min() >= 5
    places = asked[:, 1:].sum(0)
    assert chisquare(places.numpy()).pvalue > 1e-3


def test_short_rows_are_asked_one_token_and_empty_rows_refused():
    ids, maskable = torch.full((2, 6), 9), torch.zeros(2, 6, dtype=torch.bool)
    maskable[:, 2] = True
    options = {"vocab": VOCAB, "mask_id": MASK_ID, "special": SPECIAL}
    _, labels = mlm_batch(ids, maskable, seeds.generator(0), **options)
    assert torch.equal(labels != -100, maskable)
    maskable[1] = False
    with pytest.raises(DataError, match="row 1"):
        mlm_batch(ids, maskable, seeds.generator(0), **options)
    with pytest.raises(ConfigError, match="special"):
        mlm_batch(ids, maskable[:1], seeds.generator(0), vocab=5, mask_id=MASK_ID, special=SPECIAL)


def test_training_lowers_the_loss_on_a_predictable_corpus():
    with seeds.scoped(0, "mlm"):
        model = MaskedLM.from_sizes(vocab_size=VOCAB, width=32, depth=1, heads=4, max_length=12)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    start = torch.randint(0, 25, (32, 1), generator=seeds.generator(0))
    ids = 5 + (start + torch.arange(10)) % 25  # the next token is always the next number
    losses = []
    for step in range(150):
        inputs, labels = mlm_batch(ids, torch.ones_like(ids, dtype=torch.bool), seeds.generator(0, step), vocab=VOCAB,
                                   mask_id=MASK_ID, special=SPECIAL)
        loss = model.loss(inputs, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_completions_follow_the_models_distribution_at_the_masked_position(temperature):
    model, (ids, attention) = masked_lm(), sentences()
    position = torch.tensor([1, 2, 3, 1, 2, 3])
    probs = distribution(model, ids, attention, position)
    probs = probs ** (1 / temperature) / (probs ** (1 / temperature)).sum(1, keepdim=True)
    drawn = sample(model, ids, attention, position, 5_000, temperature=temperature)
    assert drawn.shape == (6, 5_000)
    for row in range(6):
        counts = torch.bincount(drawn[row], minlength=VOCAB)
        assert counts[SPECIAL].sum() == 0
        likely = probs[row] > 1e-3
        rest = [[float(v[~likely].sum())] for v in (counts, probs[row] * 5_000)]
        seen, expected = counts[likely].tolist() + rest[0], (probs[row][likely] * 5_000).tolist() + rest[1]
        if expected[-1] < 5:
            seen, expected = [*seen[:-2], seen[-2] + seen[-1]], [*expected[:-2], expected[-2] + expected[-1]]
        scale = sum(seen) / sum(expected)
        assert chisquare(seen, [scale * value for value in expected]).pvalue > 1e-4


def test_completions_hide_the_token_they_replace_and_read_the_others():
    model, (ids, attention) = masked_lm(), sentences()
    position = torch.full((6,), 2)
    drawn = sample(model, ids, attention, position, 64)
    own, other = ids.clone(), ids.clone()
    own[:, 2], other[:, 1] = 17, (other[:, 1] - 5 + 9) % 25 + 5
    assert torch.equal(drawn, sample(model, own, attention, position, 64))
    assert not torch.equal(drawn, sample(model, other, attention, position, 64))
    assert not torch.equal(drawn, sample(model, ids, attention, torch.full((6,), 1), 64))


def test_unlikely_candidates_are_dropped_and_draws_are_distinct_where_enough_survive():
    model, (ids, attention) = masked_lm(), sentences(40)
    position = torch.full((40,), 2)
    asked = torch.zeros_like(attention)
    asked[:, 2] = True
    # The threshold is on the model's own softmax, special tokens included.
    raw = model(ids.masked_fill(asked, MASK_ID), attention, asked).softmax(1).detach()
    raw[:, SPECIAL] = 0
    drawn = sample(model, ids, attention, position, 6, min_prob=0.01, replace=False)
    assert (raw.gather(1, drawn) >= 0.01).all()
    distinct = torch.tensor([len(set(row)) for row in drawn.tolist()])
    enough = (raw >= 0.01).sum(1) >= 6
    assert enough.any() and not enough.all()
    assert (distinct[enough] == 6).all() and (distinct[~enough] < 6).all()


def test_the_likeliest_token_stays_where_nothing_reaches_the_threshold():
    model, (ids, attention) = masked_lm(), sentences()
    position = torch.full((6,), 2)
    best = distribution(model, ids, attention, position).argmax(1)
    drawn = sample(model, ids, attention, position, 3, min_prob=1.0, replace=False)
    assert torch.equal(drawn, best[:, None].expand(-1, 3))


def test_a_model_that_only_wants_special_tokens_still_completes_with_ordinary_ones():
    model, (ids, attention) = masked_lm(), sentences()
    with torch.no_grad():
        model.lm.cls.predictions.bias[0] = 1e4
    drawn = sample(model, ids, attention, torch.full((6,), 1), 50, min_prob=0.01, replace=False)
    assert not torch.isin(drawn, torch.tensor(SPECIAL)).any()


def test_temperature_must_be_positive():
    model, (ids, attention) = masked_lm(), sentences()
    with pytest.raises(ConfigError, match="temperature"):
        sample(model, ids, attention, torch.full((6,), 1), 2, temperature=0.0)
