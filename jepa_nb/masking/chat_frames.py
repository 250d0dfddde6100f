"""Pairs through a tokenizer's chat template: the three token streams of LLM-JEPA, with what is predicted of them (Paper C, sheet C4).

A view is one message alone, cut behind the last token of its content: the state there is the view's embedding. Where the content ends is
read off the rendered template, so no table says how many tokens a model's template closes a turn with. A view of Text keeps the system
message, as next-token prediction does, so that both share their first tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from jinja2.exceptions import TemplateError
from transformers import PreTrainedTokenizerBase

from jepa_nb.errors import ConfigError, DataError, require_known
from jepa_nb.masking.streams import IGNORED, Streams

LABEL_POLICIES = ("answer_only", "paper_v1")
PLACEMENTS = ("append", "prepend")
DIRECTIONS = ("text_to_code", "code_to_text")
UNFIT = ("error", "drop")
DATE = "01 Jan 2025"  # some templates print today's date, which would make token ids depend on the day
ANSWER = "@answer@"  # stands for an answer while the prompt before it is rendered

Message = dict[str, str]


class TextCode(Protocol):
    """What a pair must have, as :class:`jepa_nb.data.pairs.Pair` does."""

    text: str
    code: str
    system: str


def predictor_tokens(k: int, identical: bool = False) -> str:
    """``<|predictor_k|>...<|predictor_1|>``, in the published order, or ``<|predictor_1|>`` k times (Paper C's ablation).

    Raises:
        ConfigError: ``k`` is negative.
    """
    if k < 0:
        raise ConfigError(f"k is {k}; the number of predictor tokens is 0 or more.")
    return "".join(f"<|predictor_{1 if identical else number}|>" for number in range(k, 0, -1))


class ChatFrame:
    """Turns pairs into :class:`Streams`, and prompts into token ids.

    Any fast tokenizer will do. One without pad token is padded with its end of text (padding is masked, so the id does not matter); the
    tokenizer's own padding side plays no part. Templates that know no system role get the system message before the user's; templates
    that refuse an answer without a question render Code as a user message.

    Args:
        tokenizer: with the predictor tokens already added.
        k: number of predictor tokens behind Text.
        label_policy: ``"answer_only"``: the answer and the end of its turn are predicted. ``"paper_v1"``: as the public code does, every
            token but those with the padding id, which is the end of text where a tokenizer has no pad token.
        placement: predictor tokens at the end of the content (``"append"``) or at its beginning (``"prepend"``).
        direction: ``"text_to_code"``, or ``"code_to_text"``: Code with predictor tokens is drawn to Text.
        identical: one predictor token k times.
        max_length: longest stream, in tokens.
        unfit: what happens to a pair with an empty or a too long stream: ``"error"``, or ``"drop"``, which counts it in ``dropped``.
        chat_template: used in place of the tokenizer's own.

    Attributes:
        pad_id: what rows are filled up with.
        stop_ids: tokens that end an answer.
        dropped: number of pairs left out, by reason.

    Raises:
        UnknownName: an unknown choice.
        ConfigError: the tokenizer is slow, lacks a chat template or the predictor tokens, or its template has no end of turn.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, k: int = 0, label_policy: str = "answer_only", placement: str = "append",
                 direction: str = "text_to_code", identical: bool = False, max_length: int = 512, unfit: str = "error",
                 chat_template: str | None = None):
        self.label_policy = require_known("label policy", label_policy, LABEL_POLICIES)
        self.placement = require_known("placement of the predictor tokens", placement, PLACEMENTS)
        self.direction = require_known("direction", direction, DIRECTIONS)
        self.unfit = require_known("treatment of unfit pairs", unfit, UNFIT)
        self.tokenizer, self.max_length = tokenizer, max_length
        self.template = chat_template or tokenizer.chat_template
        self.predictors = predictor_tokens(k, identical)
        self._check(k)
        self.pad_id = next((token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id) if token is not None), 0)
        self.has_system = self._takes([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}])
        self.code_role = "assistant" if self._takes([{"role": "assistant", "content": "c"}]) else "user"
        self.stop_ids = self._stops()
        self.dropped: Counter[str] = Counter()

    def streams(self, pair: TextCode) -> Streams | None:
        """The streams of a pair; ``None`` where it was dropped.

        Raises:
            DataError: an empty or too long stream, unless such pairs are dropped, or a template that changes contents.
        """
        text, code = pair.text.strip(), pair.code.strip()
        for name, content in (("text", text), ("code", code)):
            if not content:
                return self._unfit(f"empty {name}", f"the {name} of a pair is empty")
        messages = self._asked(text, pair.system)
        full, labels = self._full(messages, code)
        source, target = (messages, text), ([{"role": self.code_role, "content": code}], code)
        if self.direction == "code_to_text":
            source, target = target, source
        found = Streams(full, labels, self._predicting(*source), self._view(*target))
        longest = max(len(found.full), len(found.text), len(found.code))
        if longest > self.max_length:
            return self._unfit("too long", f"a pair has a stream of {longest} tokens, max_length is {self.max_length}")
        return found

    def prompt(self, text: str, system: str = "") -> list[int]:
        """Token ids from which an answer is generated: in training it follows just these."""
        return self._tokens(self._before_answer(self._asked(text.strip(), system)))[0]

    def _check(self, k: int) -> None:
        if not self.tokenizer.is_fast:
            raise ConfigError("the tokenizer does not say where its tokens lie in a text; load the fast one (AutoTokenizer's default).")
        if not self.template:
            raise ConfigError("the tokenizer has no chat template; set tokenizer.chat_template, or pass chat_template, for example "
                              "jepa_nb.data.chat_template.PLAIN.")
        if k and len(self._tokens(self.predictors)[0]) != k:
            raise ConfigError(f"the tokenizer does not know {self.predictors} as {k} tokens; call add_predictor_tokens first.")

    def _unfit(self, reason: str, words: str) -> None:
        if self.unfit == "error":
            raise DataError(f"{words}; leave it out, raise max_length, or set unfit to 'drop' to leave such pairs out and count them.")
        self.dropped[reason] += 1

    def _asked(self, text: str, system: str) -> list[Message]:
        if system and not self.has_system:
            return [{"role": "user", "content": f"{system}\n\n{text}"}]
        return [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": text}]

    def _full(self, messages: list[Message], code: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        rendered = self._render([*messages, {"role": "assistant", "content": code}])
        before = self._before_answer(messages)
        if not rendered.startswith(before + code):
            raise DataError(f"the chat template does not render the answer {code!r} as it is; pass another chat_template.")
        ids, spans = self._tokens(rendered)
        if self.label_policy == "answer_only":
            return tuple(ids), tuple(token if end > len(before) else IGNORED for token, (_, end) in zip(ids, spans))
        return tuple(ids), (IGNORED, *(IGNORED if token == self.pad_id else token for token in ids[1:]))  # nothing predicts the first

    def _before_answer(self, messages: list[Message]) -> str:
        return self._render([*messages, {"role": "assistant", "content": ANSWER}]).rpartition(ANSWER)[0]

    def _predicting(self, messages: list[Message], content: str) -> tuple[int, ...]:
        """A view with its predictor tokens, at either end of what the message says."""
        *before, last = messages
        said = last["content"]
        if self.placement == "append":
            return self._view([*before, last | {"content": said + self.predictors}], content + self.predictors)
        return self._view([*before, last | {"content": self.predictors + said}], content)

    def _view(self, messages: list[Message], content: str) -> tuple[int, ...]:
        """Tokens of the messages up to the last one of ``content``, with which they end."""
        rendered = self._render(messages)
        start = rendered.rfind(content)
        if start < 0:
            raise DataError(f"the chat template does not render the content {content!r} as it is; pass another chat_template.")
        ids, spans = self._tokens(rendered)
        return tuple(token for token, (begin, _) in zip(ids, spans) if begin < start + len(content))

    def _stops(self) -> frozenset[int]:
        """The end of text, and the first special token with which the template closes an answer."""
        rendered = self._render([{"role": "user", "content": "u"}, {"role": "assistant", "content": ANSWER}])
        closing = self._tokens(rendered.rpartition(ANSWER)[2])[0]
        markers = {token for token, added in self.tokenizer.added_tokens_decoder.items() if added.special}
        special = [token for token in closing if token in markers][:1]
        found = frozenset(token for token in (*special, self.tokenizer.eos_token_id) if token is not None)
        if not found:
            raise ConfigError("no token ends an answer; set tokenizer.eos_token, or pass a chat_template that closes a turn with one.")
        return found

    def _takes(self, messages: list[Message]) -> bool:
        try:
            return all(message["content"] in self._render(messages) for message in messages)
        except TemplateError:
            return False

    def _render(self, messages: Sequence[Message]) -> str:
        options: dict[str, Any] = {"chat_template": self.template, "tokenize": False, "date_string": DATE}
        return self.tokenizer.apply_chat_template(list(messages), **options)

    def _tokens(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        found = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return found["input_ids"], found["offset_mapping"]
