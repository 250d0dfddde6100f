"""Claims: any chat template gives the streams that Paper C describes.

1. A view ends with the last token of its content, whatever the template closes a turn with. 2. Labels are the answer and the end of its
turn; ``paper_v1`` labels the prompt too, and not the padding id. 3. The prompt is what the answer follows in training. 4. Predictor tokens
stand in the published order, in the predicting view alone. 5. Tokenizers without pad token, with left padding, without system role work;
one without chat template or end of turn says what to set. 6. Unfit pairs raise, or are dropped and counted.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from jepa_nb.data.chat_template import PLAIN
from jepa_nb.errors import ConfigError, DataError, UnknownName
from jepa_nb.masking.chat_frames import ChatFrame, predictor_tokens
from jepa_nb.masking.streams import IGNORED

TURN = "{{ '<|' + message['role'] + '|>' }}"
TEMPLATES = {
    "plain": PLAIN,
    "trims and has a default system message":
        "{% if messages[0]['role'] != 'system' %}{{ '<|system|>Today is ' + date_string + eos_token }}{% endif %}"
        "{% for message in messages %}" + TURN + "{{ '\n\n' + message['content'] | trim + eos_token }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n\n' }}{% endif %}",
    "closes with a line break": "{% for message in messages %}" + TURN + "{{ message['content'] + eos_token + '\n' }}{% endfor %}",
    "closes users with a line break only":
        "{% for message in messages %}" + TURN + "{{ '\n' + message['content'] }}"
        "{% if message['role'] == 'assistant' %}{{ eos_token }}{% else %}{{ '\n' }}{% endif %}{% endfor %}",
    "knows users first and no system":
        "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}"
        "{% endif %}" + TURN + "{{ '\n' + message['content'] | trim + eos_token + '\n' }}{% endfor %}",
}


def tokenizer(template: str | None = PLAIN, **options):
    """One token a byte, and markers."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trained = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(alphabet)}, merges=[]))
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trained.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=trained, **{"eos_token": "<|end|>"} | options)
    made.add_tokens(["<|system|>", "<|user|>", "<|assistant|>", *(f"<|predictor_{i}|>" for i in range(1, 5))], special_tokens=True)
    made.chat_template = template
    return made


def pair(text="lines with a dog", code=".*dog.*", system="Convert."):
    return SimpleNamespace(text=text, code=code, system=system)


@pytest.fixture(scope="module", params=TEMPLATES)
def templated(request):
    return tokenizer(TEMPLATES[request.param])


words = st.text(st.characters(codec="utf-8", exclude_characters="<|>", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(str.strip)


@given(text=words, code=words, system=st.sampled_from(["", "Convert."]), k=st.integers(0, 4))
@settings(max_examples=15, deadline=None)
def test_streams_are_what_they_promise(templated, text, code, system, k):
    frame = ChatFrame(templated, k=k)
    found = frame.streams(pair(text, code, system))
    shown = {name: templated.decode(getattr(found, name)) for name in ("full", "text", "code")}
    assert shown["text"].endswith(text.strip() + predictor_tokens(k))
    assert shown["code"].endswith(code.strip()) and found.code == frame.streams(pair("another text", code, system)).code
    predicted = [token for token in found.labels if token != IGNORED]
    assert templated.decode(predicted).strip() == code.strip() + "<|end|>"
    assert found.labels[len(found.labels) - len(predicted):] == tuple(predicted) == found.full[-len(predicted):]
    asked = frame.prompt(text, system)
    assert list(found.full[:len(asked)]) == asked and len(asked) == len(found.full) - len(predicted)
    assert "predictor" not in shown["full"] and "predictor" not in shown["code"]


def test_text_shares_all_its_tokens_with_the_full_stream_before_the_predictors(templated):
    for k in range(3):
        found = ChatFrame(templated, k=k).streams(pair())
        assert found.shared == len(found.text) - k


def test_predictor_tokens_descend_or_repeat():
    assert predictor_tokens(3) == "<|predictor_3|><|predictor_2|><|predictor_1|>"
    assert predictor_tokens(2, identical=True) == "<|predictor_1|><|predictor_1|>" and predictor_tokens(0) == ""
    with pytest.raises(ConfigError, match="0 or more"):
        predictor_tokens(-1)


def test_placement_and_direction_move_the_predictor_tokens():
    made = tokenizer()
    prepended = ChatFrame(made, k=2, placement="prepend").streams(pair())
    assert made.decode(prepended.text).endswith("<|user|>\n" + predictor_tokens(2) + "lines with a dog")
    turned = ChatFrame(made, k=1, direction="code_to_text").streams(pair())
    assert made.decode(turned.text) == "<|assistant|>\n.*dog.*<|predictor_1|>"
    assert made.decode(turned.code).endswith("lines with a dog") and turned.full == ChatFrame(made, k=1).streams(pair()).full


def test_published_labels_are_all_tokens_but_the_padding_id():
    frame = ChatFrame(tokenizer(), label_policy="paper_v1")
    found = frame.streams(pair())
    end = frame.tokenizer.eos_token_id
    assert found.labels[1:] == tuple(IGNORED if token == end else token for token in found.full[1:]) and end in found.full
    padded = ChatFrame(tokenizer(pad_token="<pad>"), label_policy="paper_v1").streams(pair())
    assert padded.labels == (IGNORED, *padded.full[1:])


def test_padding_is_the_tokenizers_own_or_its_end_and_the_side_plays_no_part():
    assert ChatFrame(tokenizer(pad_token="<pad>")).pad_id == tokenizer(pad_token="<pad>").pad_token_id
    assert ChatFrame(tokenizer()).pad_id == tokenizer().eos_token_id
    assert ChatFrame(tokenizer(padding_side="left")).streams(pair()) == ChatFrame(tokenizer(padding_side="right")).streams(pair())


def test_an_answer_ends_with_the_turn_or_the_text():
    made = tokenizer("{% for message in messages %}" + TURN + "{{ message['content'] + '<|user|>' }}{% endfor %}")
    assert ChatFrame(made).stop_ids == set(made.convert_tokens_to_ids(["<|user|>", "<|end|>"]))


def test_templates_without_system_or_lone_answers_get_users():
    made = tokenizer(TEMPLATES["knows users first and no system"])
    found = ChatFrame(made).streams(pair())
    assert made.decode(found.full) == "<|user|>\nConvert.\n\nlines with a dog<|end|>\n<|assistant|>\n.*dog.*<|end|>\n"
    assert made.decode(found.code) == "<|user|>\n.*dog.*"


def test_the_day_does_not_change_token_ids():
    made = tokenizer(TEMPLATES["trims and has a default system message"])
    assert "Today is 01 Jan 2025" in made.decode(ChatFrame(made).prompt("dog"))


def test_what_a_tokenizer_lacks_is_named():
    with pytest.raises(ConfigError, match="no chat template; set tokenizer.chat_template"):
        ChatFrame(tokenizer(None))
    assert ChatFrame(tokenizer(None), chat_template=PLAIN).streams(pair()) == ChatFrame(tokenizer()).streams(pair())
    with pytest.raises(ConfigError, match="add_predictor_tokens"):
        ChatFrame(tokenizer(), k=5)
    with pytest.raises(ConfigError, match="no token ends an answer"):
        ChatFrame(tokenizer("{% for message in messages %}" + TURN + "{{ message['content'] }}{% endfor %}", eos_token=None))
    with pytest.raises(UnknownName, match="text_to_code"):
        ChatFrame(tokenizer(), direction="text_code")
    upper = "{% for message in messages %}" + TURN + "{{ message['content'] | replace('dog', 'cat') + eos_token }}{% endfor %}"
    with pytest.raises(DataError, match="does not render the answer '.*dog.*' as it is"):
        ChatFrame(tokenizer(upper)).streams(pair("cat"))


@pytest.mark.parametrize(("unfit", "reason"), [(pair(text="  "), "empty text"), (pair(code=""), "empty code"), (pair(text="x" * 99), "too long")])
def test_unfit_pairs_raise_or_are_counted(unfit, reason):
    with pytest.raises(DataError, match=f"unfit.*drop|{reason}"):
        ChatFrame(tokenizer(), max_length=60).streams(unfit)
    frame = ChatFrame(tokenizer(), max_length=60, unfit="drop")
    assert frame.streams(unfit) is None and frame.streams(pair()) is not None
    assert frame.dropped == {reason: 1}
