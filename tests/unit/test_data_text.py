"""Claims: sentences follow the rule; splits are by document; tokens have the stated layout; the vocabulary is deterministic."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import torch

from jepa_nb import paths
from jepa_nb.data import fetch, text
from jepa_nb.data.recipes import Recipe
from jepa_nb.errors import ConfigError, DataError

TEN = "one two three four five six seven eight nine ten"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "home"))


@pytest.fixture
def documents():
    return text.load_documents("generated", "toy_sentences")


def recipe(**fields):
    return Recipe("sample", "Sample", "none", (), **fields)


def test_sentences_are_cut_at_marks_and_kept_between_8_and_30_words():
    long = " ".join(["word"] * 31)
    found = text.sentences(f'{TEN}! Too short. "{TEN}..."<br /><br />{long}? {TEN}\n{TEN}')
    assert found == [TEN, TEN, f"{TEN} {TEN}"]


def test_splits_share_no_document_and_hold_a_tenth(documents):
    train, val = ({" ".join(document) for document in part} for part in (documents.train, documents.val))
    assert not train & val
    assert len(documents.val) == 24 and len(documents.train) == 216
    assert "train 216 documents" in documents.description and "val 24 documents" in documents.description


def test_duplicate_texts_cannot_stand_on_both_sides(tmp_path, monkeypatch):
    rows = [f"{TEN} {number}." for number in range(40)] * 3 + [f"{TEN} x."]
    csv = "text,label,source\n" + "".join(f"{row},0,{'other' if row.endswith('x.') else 'imdb'}\n" for row in rows)
    (tmp_path / "reviews.csv").write_text(csv)
    monkeypatch.setattr(fetch, "fetch_recipe", lambda *_: {"reviews.csv": tmp_path / "reviews.csv"})
    source = recipe(embedded=("package",), read={"column": "text", "keep": {"source": "imdb"}})
    documents = text.documents_of(source, "embedded")
    assert len(documents.train) == 36 and len(documents.val) == 4
    assert not any("x" in sentence.split() for document in documents.train + documents.val for sentence in document)


def test_local_json_lines_keep_the_published_split(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_DATA", str(tmp_path))
    for name, count in (("a.json.gz", 5), ("b.json.gz", 3)):
        with gzip.open(tmp_path / name, "wt") as handle:
            handle.writelines(json.dumps({"text": f"{TEN} {name[0]} {n}."}) + "\n" for n in range(count))
    local = {"files": ["a.json.gz", "b.json.gz"], "splits": {"train": "a.json.gz", "val": "b.json.gz"},
             "rows": {"train": 4, "val": 9}}
    documents = text.documents_of(recipe(local=local, read={"column": "text"}), "local")
    assert len(documents.train) == 4 and len(documents.val) == 3
    (tmp_path / "b.json.gz").unlink()
    with pytest.raises(DataError, match="'b.json.gz' of 'sample' is not in JEPA_NB_DATA"):
        text.documents_of(recipe(local=local, read={"column": "text"}), "local")


def test_local_needs_its_variable(monkeypatch):
    monkeypatch.delenv("JEPA_NB_DATA", raising=False)
    with pytest.raises(DataError, match="needs JEPA_NB_DATA"):
        text.load_documents("local", "c4")


def test_a_batch_is_cls_words_sep_padding(documents):
    tokenizer = text.wordpiece(documents, 300)
    tokens = text.sample_tokens(documents, tokenizer, 50, 16, np.random.default_rng(0))
    assert tokens.ids.shape == tokens.attention.shape == tokens.special.shape == (50, 16)
    assert tokens.ids.dtype == torch.int64 and tokens.attention.dtype == tokens.special.dtype == torch.bool
    pad, cls, sep = (tokenizer.token_to_id(name) for name in ("[PAD]", "[CLS]", "[SEP]"))
    last = tokens.attention.sum(1) - 1
    assert (tokens.ids[:, 0] == cls).all() and (tokens.ids[torch.arange(50), last] == sep).all()
    assert ((tokens.ids == pad) == ~tokens.attention).all()
    assert (tokens.special == torch.isin(tokens.ids, torch.tensor([pad, cls, sep]))).all()


def test_special_tokens_come_first_and_text_cannot_forge_letters(documents):
    tokenizer = text.wordpiece(documents, 300)
    assert [tokenizer.id_to_token(i) for i in range(5)] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.encode("##a", add_special_tokens=False).tokens != ["##a"]


def test_sentences_are_not_repeated_while_the_pool_lasts_and_evenly_after(documents):
    tokenizer = text.wordpiece(documents, 300)
    total = sum(map(len, documents.val))
    all_of_them = text.sample_tokens(documents, tokenizer, total, 60, np.random.default_rng(1), split="val")
    distinct = {tuple(row) for row in all_of_them.ids.tolist()}
    assert len(distinct) == len({s for d in documents.val for s in d})
    few = text.sample_tokens(documents, tokenizer, 100, 60, np.random.default_rng(1), n_documents=2)
    counts = torch.unique(few.ids, dim=0, return_counts=True)[1]
    assert len(few.ids) == 100 and counts.max() - counts.min() <= 1 and len(counts) <= 18


def test_one_seed_one_batch(documents):
    tokenizer = text.wordpiece(documents, 300)
    draw = [text.sample_tokens(documents, tokenizer, 20, 12, np.random.default_rng(seed)).ids for seed in (3, 3, 4)]
    assert torch.equal(draw[0], draw[1]) and not torch.equal(draw[0], draw[2])


def test_bad_requests_are_refused(documents):
    tokenizer = text.wordpiece(documents, 300)
    for options in ({"length": 2}, {"length": 12, "n_documents": 9999}):
        with pytest.raises(ConfigError, match="cannot draw sentences"):
            text.sample_tokens(documents, tokenizer, 5, options.pop("length"), np.random.default_rng(0), **options)
    with pytest.raises(ConfigError, match="vocab_size 20 is below"):
        text.wordpiece(documents, 20)


def test_the_vocabulary_sees_the_training_split_only(documents):
    marked = text.Documents(documents.train, [["zq " * 10]] * 50, "")
    assert text.wordpiece(marked, 300).to_str() == text.wordpiece(documents, 300).to_str()


def test_the_vocabulary_is_the_same_each_time_it_is_trained(documents, tmp_path, monkeypatch):
    # The trainer's hash maps get a new random seed each time, so a plain training numbers the tokens anew even in one process.
    trained = set()
    for number in range(4):
        monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / str(number)))
        trained.add(text.wordpiece(documents, 200).to_str())
    assert len(trained) == 1


def test_a_damaged_cached_tokenizer_is_named_with_the_remedy(documents):
    text.wordpiece(documents, 300)
    (file,) = (paths.cache() / "tokenizers").glob("*.json")
    file.write_text(file.read_text()[:200])
    with pytest.raises(DataError, match=f"{file.name} is damaged .*delete"):
        text.wordpiece(documents, 300)
