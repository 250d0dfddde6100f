"""The three streams of LLM-JEPA as rows of one batch (Paper C, section "custom attention mask").

A pair needs three readings: Text followed by Code for next-token prediction, Text with predictor tokens for ``Pred(Enc(Text))``, and Code
alone for ``Enc(Code)``. They can stand in three rows, in two (the paper's packed form, 2 forward passes instead of 3), or in one: what Text
with its predictor tokens shares with Text followed by Code is computed once. Every layout computes the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from jepa_nb.errors import ConfigError, DataError, require_known

IGNORED = -100  # label of a token that is not predicted
LAYOUTS = ("separate", "packed", "shared_prefix")
PADDING = -1  # segment of a padding token; also fills the index of a short view


@dataclass(frozen=True)
class Streams:
    """One pair as token ids, without padding.

    Attributes:
        full: Text, then Code, as in fine-tuning.
        labels: one per token of ``full``: the token itself where it is predicted (from those before it), else -100.
        text: Text with its predictor tokens; the state of the last token is ``Pred(Enc(Text))``.
        code: Code alone; the state of its last token is ``Enc(Code)``.

    Raises:
        DataError: a stream is empty, or there is not one label for each token.
    """

    full: tuple[int, ...]
    labels: tuple[int, ...]
    text: tuple[int, ...]
    code: tuple[int, ...]

    def __post_init__(self) -> None:
        empty = [name for name in ("full", "text", "code") if not getattr(self, name)]
        if empty:
            raise DataError(f"the stream '{empty[0]}' of a pair has no token; leave pairs with an empty text or code out.")
        if len(self.full) != len(self.labels):
            raise DataError(f"{len(self.full)} tokens have {len(self.labels)} labels; give one a token, {IGNORED} where none is predicted.")

    @property
    def shared(self) -> int:
        """Number of tokens with which ``text`` and ``full`` both begin."""
        differs = (place for place, (ours, theirs) in enumerate(zip(self.text, self.full)) if ours != theirs)
        return next(differs, min(len(self.text), len(self.full)))


@dataclass(frozen=True)
class StreamBatch:
    """R rows of L tokens, padded on the right.

    Attributes:
        input_ids: (R, L) int64.
        attention: (R, L) bool for rows of one stream each (causal, True on tokens), else (R, 1, L, L) bool, True where the token of the
            row's second-last index may attend to that of the last.
        position_ids: (R, L) int64; they start at 0 in every stream.
        labels: (R, L) int64, -100 where nothing is predicted.
        text_index, code_index: (B, T) int64: where the tokens of a pair's view lie, as row * L + column in reading order, then -1;
            ``None`` without JEPA.
    """

    input_ids: Tensor
    attention: Tensor
    position_ids: Tensor
    labels: Tensor
    text_index: Tensor | None = None
    code_index: Tensor | None = None

    def to(self, device: torch.device | str) -> StreamBatch:
        """The batch on another device."""
        moved = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(self, **{name: value.to(device) for name, value in moved.items() if value is not None})


@dataclass
class _Row:
    """One row while it is put together: ``segment`` numbers its streams, ``sees`` counts the leading tokens that all of a stream sees."""

    ids: list[int]
    labels: list[int]
    positions: list[int]
    segment: list[int]
    sees: list[int]

    @classmethod
    def of(cls, ids: Sequence[int], labels: Sequence[int] | None = None) -> _Row:
        return cls([], [], [], [], []).append(ids, labels)

    def append(self, ids: Sequence[int], labels: Sequence[int] | None = None, after: int = 0) -> _Row:
        """Add a stream that goes on from the first ``after`` tokens of the row and sees nothing else of it."""
        number = self.segment[-1] + 1 if self.segment else 0
        self.ids += ids
        self.labels += labels if labels is not None else [IGNORED] * len(ids)
        self.positions += range(after, after + len(ids))
        self.segment += [number] * len(ids)
        self.sees += [after] * len(ids)
        return self


def block_causal(segment: Tensor, sees: Tensor) -> Tensor:
    """Attention among streams that share a row.

    A token attends to itself, to earlier tokens of its own segment, and to the first ``sees`` tokens of the row. Padding attends to
    itself alone, so that no row of the mask is empty (an empty one would be NaN after softmax).

    Args:
        segment: (R, L) int, the stream of each token, -1 for padding.
        sees: (R, L) int, how many leading tokens of the row a token sees besides; at most its own column.

    Returns:
        (R, 1, L, L) bool, True where the query (second-last index) may attend to the key (last).
    """
    column = torch.arange(segment.shape[1], device=segment.device)
    same = (segment[:, :, None] == segment[:, None, :]) & (segment != PADDING)[:, :, None]
    own = same & (column[:, None] >= column)
    prefix = column < sees[:, :, None]
    return (own | prefix | (column[:, None] == column))[:, None]


def lay_out(examples: Sequence[Streams], layout: str, *, pad_id: int, jepa: bool = True, multiple: int = 1) -> StreamBatch:
    """The pairs' streams as rows of a batch.

    ``separate``: 3B rows, one a stream. ``packed``: 2B rows, Text followed by Code, then the two views beside each other. ``shared_prefix``:
    B rows, Text followed by Code, then what the Text view does not share with it, then the Code view. Tokens are compared one by one for the
    shared prefix, so any chat template and any place of the predictor tokens will do.

    Args:
        examples: B pairs.
        layout: one of :data:`LAYOUTS`.
        pad_id: token that fills rows up.
        jepa: whether the two views are laid out; without them all layouts are B plain causal rows.
        multiple: row length is rounded up to a multiple of it.

    Raises:
        UnknownName: unknown layout.
        ConfigError: no example, or ``multiple`` below 1.
    """
    require_known("layout", layout, LAYOUTS)
    if not examples or multiple < 1:
        raise ConfigError(f"lay_out takes one pair or more and a multiple of 1 or more, got {len(examples)} and {multiple}.")
    build = {"separate": _separate, "packed": _packed, "shared_prefix": _shared_prefix}[layout] if jepa else _plain
    rows, text, code = build(examples)
    length = -(-max(len(row.ids) for row in rows) // multiple) * multiple
    segment = _padded([row.segment for row in rows], PADDING, length)
    plain = all(row.segment[-1] == 0 for row in rows)
    return StreamBatch(
        input_ids=_padded([row.ids for row in rows], pad_id, length),
        attention=segment != PADDING if plain else block_causal(segment, _padded([row.sees for row in rows], 0, length)),
        position_ids=_padded([row.positions for row in rows], 0, length),
        labels=_padded([row.labels for row in rows], IGNORED, length),
        text_index=_index(text, length), code_index=_index(code, length))


Place = tuple[int, Sequence[int]]  # row and columns of a view
Built = tuple[list[_Row], list[Place], list[Place]]


def _plain(examples: Sequence[Streams]) -> Built:
    return [_Row.of(each.full, each.labels) for each in examples], [], []


def _separate(examples: Sequence[Streams]) -> Built:
    count = len(examples)
    rows = [_Row.of(each.full, each.labels) for each in examples]
    rows += [_Row.of(each.text) for each in examples] + [_Row.of(each.code) for each in examples]
    return (rows, [(count + place, range(len(each.text))) for place, each in enumerate(examples)],
            [(2 * count + place, range(len(each.code))) for place, each in enumerate(examples)])


def _packed(examples: Sequence[Streams]) -> Built:
    count = len(examples)
    rows = [_Row.of(each.full, each.labels) for each in examples] + [_Row.of(each.text).append(each.code) for each in examples]
    return (rows, [(count + place, range(len(each.text))) for place, each in enumerate(examples)],
            [(count + place, range(len(each.text), len(each.text) + len(each.code))) for place, each in enumerate(examples)])


def _shared_prefix(examples: Sequence[Streams]) -> Built:
    rows, text, code = [], [], []
    for place, each in enumerate(examples):
        shared, end = each.shared, len(each.full)
        own = len(each.text) - shared
        rows.append(_Row.of(each.full, each.labels).append(each.text[shared:], after=shared).append(each.code))
        text.append((place, [*range(shared), *range(end, end + own)]))
        code.append((place, range(end + own, end + own + len(each.code))))
    return rows, text, code


def _padded(rows: Sequence[Sequence[int]], fill: int, length: int) -> Tensor:
    return torch.tensor([[*row, *[fill] * (length - len(row))] for row in rows], dtype=torch.int64)


def _index(places: Sequence[Place], length: int) -> Tensor | None:
    if not places:
        return None
    widest = max(len(columns) for _, columns in places)
    return _padded([[row * length + column for column in columns] for row, columns in places], PADDING, widest)
