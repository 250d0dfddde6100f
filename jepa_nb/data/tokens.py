"""WordPiece vocabularies trained on the training split, and batches of tokens drawn from documents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from filelock import FileLock
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from jepa_nb import files, paths, seeds
from jepa_nb.data.archives import disk_errors
from jepa_nb.errors import ConfigError, DataError

if TYPE_CHECKING:
    from jepa_nb.data.text import Documents

TRAINING_SENTENCES = 50_000
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Tokens:
    """A batch of sentences.

    Attributes:
        ids: (N, T) int64, ``[CLS] words [SEP]`` and then padding.
        attention: (N, T) bool, true on real tokens (CLS and SEP included).
        special: (N, T) bool, true on CLS, SEP and padding: what is never masked nor predicted.
    """

    ids: torch.Tensor
    attention: torch.Tensor
    special: torch.Tensor


def wordpiece(documents: Documents, vocab_size: int) -> Tokenizer:
    """Lower-case WordPiece tokenizer of the training split; the same documents give the same ids in every process.

    It is trained on at most 50,000 sentences, drawn from a fixed stream, and kept in the cache under the digest of the training
    split and the size.

    Raises:
        ConfigError: ``vocab_size`` is below what the special tokens and the alphabet need.
        DataError: the cached file is damaged, or the cache cannot be written.
    """
    texts = [sentence for document in documents.train for sentence in document]
    place = paths.cache() / "tokenizers" / f"wordpiece-{_digest(texts)}-{vocab_size}.json"
    with disk_errors("the tokenizer"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not place.is_file():
                files.write_text(place, _train(texts, vocab_size).to_str())
    try:
        return Tokenizer.from_str(place.read_text(encoding="utf-8"))
    except Exception as fault:  # tokenizers raises bare Exception for every malformed file
        raise DataError(f"cached tokenizer {place.name} is damaged ({fault}); delete {place} and run again.") from fault


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _blank(model: models.Model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _train(texts: list[str], vocab_size: int) -> Tokenizer:
    if len(texts) > TRAINING_SENTENCES:
        order = seeds.numpy_generator(0, "wordpiece").choice(len(texts), size=TRAINING_SENTENCES, replace=False)
        texts = [texts[i] for i in order]
    scratch = _blank(models.WordPiece(unk_token="[UNK]"))
    # The trainer numbers the continuations "##x" in the order of a hash map with a random seed, and breaks ties by number.
    # Handed over as special tokens they keep the order given here, so ids and merges are the same in every process.
    first = [*SPECIAL, *_continuations(scratch, texts)]
    trainer = trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=first, show_progress=False)
    scratch.train_from_iterator(texts, trainer)
    vocabulary = scratch.get_vocab()
    if len(vocabulary) > vocab_size:
        raise ConfigError(f"vocab_size {vocab_size} is below the {len(vocabulary)} special tokens and single characters "
                          "of the text; take a larger one.")
    ordered = dict(sorted(vocabulary.items(), key=lambda entry: entry[1]))
    tokenizer = _blank(models.WordPiece(ordered, unk_token="[UNK]"))
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def _continuations(tokenizer: Tokenizer, texts: list[str]) -> list[str]:
    """``##x`` for each character x that can stand inside a word, sorted."""
    normalize, cut = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    characters = {inner for outer in set("".join(texts)) for inner in normalize(outer)}
    return [f"##{x}" for x in sorted(characters) if [word for word, _ in cut(f"a{x}")] == [f"a{x}"]]


def sample_tokens(documents: Documents, tokenizer: Tokenizer, n: int, length: int, generator: np.random.Generator, *,
                  split: str = "train", n_documents: int | None = None) -> Tokens:
    """Draw ``n`` sentences and tokenize them to ``length`` tokens.

    Sentences are drawn without replacement; where there are fewer than ``n`` each is used equally often, give or take one.

    Args:
        documents: where to draw from.
        tokenizer: from :func:`wordpiece`, or any with the tokens ``[PAD] [CLS] [SEP]``.
        n: sentences, N.
        length: tokens T with CLS and SEP; longer sentences are cut, shorter ones padded.
        generator: source of randomness.
        split: ``"train"`` or ``"val"``.
        n_documents: draw that many documents first and use only their sentences.

    Raises:
        ConfigError: ``length`` is below 3, or the split has fewer than ``n_documents`` documents, or no sentence.
    """
    pool = documents.part(split)
    if length < 3 or not pool or (n_documents or 0) > len(pool):
        raise ConfigError(f"cannot draw sentences of length {length} from {n_documents or 'all'} of the {len(pool)} documents of "
                          f"'{split}'; length must be at least 3, and the documents must exist.")
    if n_documents is not None:
        pool = [pool[i] for i in generator.choice(len(pool), size=n_documents, replace=False)]
    texts = [sentence for document in pool for sentence in document]
    order = np.concatenate([generator.permutation(len(texts)) for _ in range(-(-n // len(texts)))])[:n]
    return encode([texts[i] for i in order], tokenizer, length)


def encode(texts: list[str], tokenizer: Tokenizer, length: int) -> Tokens:
    """Tokenize sentences as ``[CLS] words [SEP]``, cut or padded to ``length``; ``ids`` is (len(texts), length)."""
    pad, first, last = (tokenizer.token_to_id(token) for token in ("[PAD]", "[CLS]", "[SEP]"))
    ids = np.full((len(texts), length), pad, dtype=np.int64)
    used = np.empty(len(texts), dtype=np.int64)
    for row, encoding in enumerate(tokenizer.encode_batch(texts, add_special_tokens=False)):
        words = encoding.ids[:length - 2]
        used[row] = len(words) + 2
        ids[row, :used[row]] = [first, *words, last]
    attention = np.arange(length) < used[:, None]
    special = ~attention | (np.arange(length) == 0) | (np.arange(length) == used[:, None] - 1)
    return Tokens(torch.from_numpy(ids), torch.from_numpy(attention), torch.from_numpy(special))
