"""Byte-level vocabularies trained on (Text, Code) pairs: lossless, so that a regular expression is answered to the letter (Paper C)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from filelock import FileLock
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from jepa_nb import files, paths, seeds
from jepa_nb.data.archives import disk_errors
from jepa_nb.data.chat_template import END, PAD, PLAIN, ROLES
from jepa_nb.errors import ConfigError, DataError

if TYPE_CHECKING:
    from jepa_nb.data.pairs import Pair

TRAINING_PAIRS = 20_000
SPECIAL = (PAD, END, *ROLES)
PIECES = r" ?\w+|[^\w\s]+|\s+"  # words with the blank before them, runs of marks, runs of blanks
VERSION = 1  # of the training below; part of the cached file's name


def byte_level(pairs: Sequence[Pair], vocab_size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE of the pairs' texts, codes and system prompts; the same pairs give the same ids in every process.

    Every string is encoded without loss. It is trained on at most 20,000 pairs, drawn from a fixed stream, and kept in the cache
    under the digest of the pairs and the size. It has :data:`jepa_nb.data.chat_template.PLAIN` as its chat template, ``<|end|>`` as
    end of turn and of text, and ``<pad>``.

    Args:
        pairs: what the vocabulary is trained on.
        vocab_size: ids at most, special tokens and the 256 bytes included; little text gives fewer.

    Raises:
        ConfigError: ``vocab_size`` is below the special tokens and the bytes.
        DataError: the cached file is damaged, or the cache cannot be written.
    """
    if vocab_size < len(SPECIAL) + 256:
        raise ConfigError(f"vocab_size {vocab_size} is below the {len(SPECIAL) + 256} special tokens and bytes; take a larger one.")
    texts = [part for pair in pairs for part in (pair.system, pair.text, pair.code)]
    place = paths.cache() / "tokenizers" / f"bytes{VERSION}-{_digest(texts)}-{vocab_size}.json"
    with disk_errors("the tokenizer"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not place.is_file():
                files.write_text(place, _train(texts, vocab_size).to_str())
    try:
        trained = Tokenizer.from_str(place.read_text(encoding="utf-8"))
    except Exception as fault:  # tokenizers raises bare Exception for every malformed file
        raise DataError(f"cached tokenizer {place.name} is damaged ({fault}); delete {place} and run again.") from fault
    return PreTrainedTokenizerFast(
        tokenizer_object=trained, pad_token=PAD, eos_token=END, extra_special_tokens=list(ROLES), chat_template=PLAIN,
        clean_up_tokenization_spaces=False, padding_side="right")


def _digest(texts: list[str]) -> str:
    """Of the texts with their lengths, so that moving a boundary between two of them changes it."""
    content = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        content.update(len(data).to_bytes(8, "little") + data)
    return content.hexdigest()[:16]


def _train(texts: list[str], vocab_size: int) -> Tokenizer:
    if len(texts) > 3 * TRAINING_PAIRS:
        chosen = seeds.numpy_generator(0, "byte-level").choice(len(texts) // 3, size=TRAINING_PAIRS, replace=False)
        texts = [texts[3 * i + part] for i in chosen for part in range(3)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PIECES), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(SPECIAL), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
