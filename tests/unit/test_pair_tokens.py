"""Claims: the byte-level vocabulary of pairs loses nothing of any text; the same pairs give the same ids in another process, with and
without the cached file; the file is keyed by pairs and size, and a damaged one is named; the chat template writes marker, content, end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from jepa_nb import paths
from jepa_nb.data import pair_tokens
from jepa_nb.data.chat_template import END, PAD, ROLES
from jepa_nb.data.pair_tokens import byte_level
from jepa_nb.errors import ConfigError, DataError

Pair = namedtuple("Pair", "text code system group", defaults=("", ""))  # the fields of jepa_nb.data.pairs.Pair
SYSTEM = "Convert natural language to regular expression."
PAIRS = [Pair(f"lines with the word {word} before a {kind} letter", f".*{word}.*[{letters}].*", SYSTEM)
         for word in ("dog", "truck", "ring", "lake") for kind, letters in (("capital", "A-Z"), ("small", "a-z"), ("vowel", "AEIOUaeiou"))]
SIZE = 320


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JEPA_NB_HOME", str(tmp_path_factory.mktemp("home")))
        return byte_level(PAIRS, SIZE)


def cached():
    return sorted((paths.cache() / "tokenizers").glob("*.json"))


@given(text=st.text(max_size=40))
@example(text="  two  blanks \t tab\r\nline\u2028 end  ")
@example(text=".*(dog|[A-Z]{3,})?\\b\\d+ 'x' n't ,.")
@example(text="é e\u0301 ﬁ 漢字 🙂‍↔️ \u00a0\u200b\x00\x7f")
@settings(max_examples=150, deadline=None)
def test_no_text_is_changed(tokenizer, text):
    assume(not any(marker in text for marker in (PAD, END, *ROLES)))
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert all(0 <= token < len(tokenizer) for token in ids)


@given(prefix=st.sampled_from(["", "a", "x ", "漢", ".*"]), suffix=st.sampled_from(["", "b", " y", "\n", "é"]))
@settings(max_examples=15, deadline=None)
def test_text_round_a_marker_is_kept_and_the_marker_is_one_token(tokenizer, prefix, suffix):
    for marker in (END, *ROLES):
        ids = tokenizer(prefix + marker + suffix, add_special_tokens=False)["input_ids"]
        assert ids.count(tokenizer.convert_tokens_to_ids(marker)) == 1
        assert tokenizer.decode(ids) == prefix + marker + suffix and tokenizer.decode(ids, skip_special_tokens=True) == prefix + suffix


def test_training_merges_what_the_pairs_repeat_and_special_tokens_come_first(tokenizer):
    assert tokenizer.convert_tokens_to_ids([PAD, END, *ROLES]) == [0, 1, 2, 3, 4]
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.padding_side) == (0, 1, "right")
    assert set(ROLES) <= set(tokenizer.all_special_tokens)
    assert len(tokenizer) == SIZE
    ids = tokenizer(PAIRS[0].text)["input_ids"]
    assert len(ids) < len(PAIRS[0].text) / 2
    assert len(tokenizer("\x01\x02é")["input_ids"]) == 4  # bytes that the pairs do not hold have tokens too
    assert all(len(tokenizer(byte)["input_ids"]) == 1 for byte in map(chr, range(128)))


def test_little_text_gives_fewer_tokens_than_asked_for():
    found = byte_level([Pair("ab", "ab")], 1000)
    assert 261 <= len(found) <= 263 and found.decode(found("zebra")["input_ids"]) == "zebra"


def test_the_ids_are_the_same_after_the_cache_is_deleted():
    trained = set()
    for _ in range(3):
        trained.add(byte_level(PAIRS, SIZE).backend_tokenizer.to_str())
        (file,) = cached()
        file.unlink()
    assert len(trained) == 1


def test_the_ids_are_the_same_in_another_process(tokenizer, tmp_path):
    script = ("import sys; from collections import namedtuple; from jepa_nb.data.pair_tokens import byte_level\n"
              "Pair = namedtuple('Pair', 'text code system group')\n"
              f"pairs = [Pair(*each) for each in {[tuple(pair) for pair in PAIRS]!r}]\n"
              f"print(sorted(byte_level(pairs, {SIZE}).get_vocab().items(), key=lambda entry: entry[1]))")
    environment = os.environ | {"JEPA_NB_HOME": str(tmp_path / "another"), "PYTHONHASHSEED": "77", "PYTHONIOENCODING": "utf-8"}
    found = subprocess.run([sys.executable, "-c", script], cwd=paths.project(), env=environment, capture_output=True, text=True, timeout=120,
                           encoding="utf-8", check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == str(sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1]))
    assert len(list((tmp_path / "another" / "tokenizers").glob("*.json"))) == 1


def test_the_cached_file_is_read_and_not_trained_again(monkeypatch):
    first = byte_level(PAIRS, SIZE).get_vocab()
    monkeypatch.setattr(pair_tokens, "_train", lambda *_: pytest.fail("trained although the file is there"))
    assert byte_level(PAIRS, SIZE).get_vocab() == first


def test_other_pairs_or_another_size_have_a_file_of_their_own():
    byte_level(PAIRS, SIZE)
    moved = [Pair("ab", "c"), Pair("a", "bc"), Pair("", "abc"), Pair("abc", ""), Pair("a", "b", "c")]
    for pairs, size in ((PAIRS, SIZE), (PAIRS, SIZE + 1), (PAIRS[:-1], SIZE), *(([pair], SIZE) for pair in moved)):
        byte_level(pairs, size)
    assert len(cached()) == 3 + len(moved)


def test_many_pairs_are_trained_on_by_a_fixed_draw_of_whole_pairs(monkeypatch):
    texts = [part for pair in PAIRS for part in (pair.system, pair.text, pair.code)]
    every = pair_tokens._train(texts, SIZE).to_str()
    monkeypatch.setattr(pair_tokens, "TRAINING_PAIRS", 2)
    few = {pair_tokens._train(texts, SIZE).to_str() for _ in range(2)}
    assert len(few) == 1 and every not in few
    chosen = [(PAIRS[i], PAIRS[j]) for i in range(len(PAIRS)) for j in range(len(PAIRS)) if i != j]
    monkeypatch.setattr(pair_tokens, "TRAINING_PAIRS", 99)
    by_hand = {pair_tokens._train([part for pair in pairs for part in (pair.system, pair.text, pair.code)], SIZE).to_str() for pairs in chosen}
    assert few <= by_hand  # two whole pairs, with their texts, codes and system prompts


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_a_damaged_cached_file_is_named_with_the_remedy(damage):
    byte_level(PAIRS, SIZE)
    (file,) = cached()
    content = file.read_text(encoding="utf-8")
    file.write_text({"cut": content[:200], "empty": "", "other": "{}"}[damage], encoding="utf-8")
    with pytest.raises(DataError, match=f"cached tokenizer {file.name} is damaged .*delete .* and run again"):
        byte_level(PAIRS, SIZE)
    file.unlink()
    assert len(byte_level(PAIRS, SIZE)) == SIZE


def test_a_size_below_the_bytes_is_refused():
    for size in (0, 260):
        with pytest.raises(ConfigError, match=f"vocab_size {size} is below the 261 special tokens and bytes"):
            byte_level(PAIRS, size)
    assert len(byte_level(PAIRS, 261)) == 261 and len(cached()) == 1


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("JEPA_NB_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match="tokenizer"):
        byte_level(PAIRS, SIZE)


def test_the_chat_template_writes_marker_line_content_end(tokenizer):
    pair = PAIRS[0]
    messages = [{"role": "system", "content": pair.system}, {"role": "user", "content": pair.text}, {"role": "assistant", "content": pair.code}]
    wanted = f"<|system|>\n{pair.system}<|end|><|user|>\n{pair.text}<|end|><|assistant|>\n{pair.code}<|end|>"
    assert tokenizer.apply_chat_template(messages, tokenize=False) == wanted
    prompt = tokenizer.apply_chat_template(messages[:2], tokenize=False, add_generation_prompt=True)
    assert prompt == wanted[:wanted.index("<|assistant|>")] + "<|assistant|>\n"
    ids = tokenizer(wanted, add_special_tokens=False)["input_ids"]
    assert ids[:len(tokenizer(prompt, add_special_tokens=False)["input_ids"])] == tokenizer(prompt, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == wanted and ids[-1] == tokenizer.eos_token_id
    assert [token for token in ids if token < 5] == [2, 1, 3, 1, 4, 1]
