"""Properties of drawing: crops are balanced over kinds and originals, sentences obey their rule, batches their layout."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from jepa_nb.data import images, text
from jepa_nb.data.tokens import SPECIAL, encode
from jepa_nb.worlds import pictures, sentences

COMMON = settings(deadline=None, max_examples=40)


def originals(counts):
    frame = np.zeros((20, 30, 3), np.uint8)
    made = [images.Original(f"{kind}{split}{n}", str(kind), split, [frame])
            for kind, pair in enumerate(counts) for split, count in zip(("train", "val"), pair) for n in range(count)]
    return [made[i] for i in np.random.default_rng(0).permutation(len(made))]


@COMMON
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=4), st.integers(1, 60),
       st.sampled_from(["train", "val"]), st.integers(0, 2**32))
def test_no_kind_and_no_original_gets_more_than_its_share(counts, n, split, seed):
    found = originals(counts)
    _, origin = images.sample_crops(found, n, 8, np.random.default_rng(seed), split=split)
    drawn = [found[i] for i in origin.tolist()]
    assert len(drawn) == n and {original.split for original in drawn} == {split}
    kinds = [sum(original.kind == str(kind) for original in drawn) for kind in range(len(counts))]
    assert max(kinds) - min(kinds) <= 1
    for kind, total in enumerate(kinds):
        uses = [sum(d.name == o.name for d in drawn) for o in found if o.kind == str(kind) and o.split == split]
        assert sum(uses) == total and max(uses) - min(uses) <= 1


@COMMON
@given(st.integers(1, 90), st.integers(1, 90), st.integers(4, 40), st.sampled_from([None, (0.3, 1.0), (0.01, 0.02)]),
       st.integers(0, 999))
def test_crops_of_any_picture_stay_inside_it(height, width, size, area, seed):
    frame = np.full((height, width, 3), 255, np.uint8)
    found = [images.Original("a", "k", "train", [frame], area)]
    crops, _ = images.sample_crops(found, 3, size, np.random.default_rng(seed), split="train")
    assert crops.shape == (3, 3, size, size) and (crops == 1).all()  # beyond the edge Pillow would pad with black


@COMMON
@given(st.text(alphabet="ab .!?\"'<br/>\n", max_size=400))
def test_sentences_hold_8_to_30_words_and_no_marks(raw):
    for sentence in text.sentences(raw):
        assert 8 <= len(sentence.split(" ")) <= 30
        assert not set(sentence) & set(".!?\n") and "<br />" not in sentence and sentence in " ".join(sentence.split())


@COMMON
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_generated_documents_survive_the_rule_whole(seed, count):
    for document in sentences.documents(seed=seed, count=count):
        assert 4 <= document.count(".") <= 9 and len(text.sentences(document)) == document.count(".")


@COMMON
@given(st.integers(0, 1000), st.integers(8, 40))
def test_generated_pictures_are_rgb_and_not_flat(seed, side):
    for picture in pictures.pictures(seed=seed, count=2, side=side):
        assert picture.shape == (side, side, 3) and picture.dtype == np.uint8 and picture.std() > 0


def letters():
    names = [*SPECIAL, *"abcdefgh"]
    tokenizer = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


@COMMON
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), min_size=1, max_size=6), st.integers(3, 14))
def test_a_batch_holds_the_words_that_fit_in_order(texts, length):
    tokenizer = letters()
    tokens = encode([" ".join(words) for words in texts], tokenizer, length)
    for words, ids, real, special in zip(texts, tokens.ids, tokens.attention, tokens.special):
        kept = words[:length - 2]
        assert [tokenizer.id_to_token(i) for i in ids[~special].tolist()] == kept
        assert real.sum() == len(kept) + 2 and torch.equal(real, torch.arange(length) < len(kept) + 2)
