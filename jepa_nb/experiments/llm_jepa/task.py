"""The pairs of one run as token streams: which are trained on, which are held out, and in which order they come."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from jepa_nb import paths, seeds
from jepa_nb.data.pairs import Pair, load_pairs
from jepa_nb.errors import ConfigError, DataError
from jepa_nb.experiments.llm_jepa.config import Finetune
from jepa_nb.masking.chat_frames import ChatFrame
from jepa_nb.masking.streams import StreamBatch, Streams, lay_out
from jepa_nb.metrics import answers, queries
from jepa_nb.worlds import sql

CHUNK = 8  # batches whose pairs are sorted by length together, so that a batch holds little padding
EXECUTED = "execution"  # rule: the generated query gives the gold query's rows
EXECUTED_PUBLISHED = "execution_published"  # the same as published: two queries that fail count as equal
PUBLISHED = {"nq_open": "nq_open_published", EXECUTED: EXECUTED_PUBLISHED}  # rules of which the public code has a faulty form


@dataclass(frozen=True)
class Split:
    """Pairs with their streams, in one order."""

    pairs: list[Pair]
    streams: list[Streams]

    def head(self, count: int) -> Split:
        """The first ``count`` pairs."""
        return Split(self.pairs[:count], self.streams[:count])


class PairTask:
    """Data of one run; everything random comes from streams named after the run's seed."""

    def __init__(self, config: Finetune, tokenizer: Any):
        self.config, self.tokenizer = config, tokenizer
        found = load_pairs(config.source, config.recipe)
        self.description, self.standin = found.description, found.standin
        self.frame = ChatFrame(
            tokenizer, k=config.k, label_policy=config.label_policy, placement=config.placement, direction=config.direction,
            identical=config.identical, max_length=config.max_length, unfit="drop")
        pool = self._framed(found.train, "training pairs", config.n_train + config.n_val)
        train = len(pool.pairs) - config.n_val
        self.train = pool.head(train)
        self.splits = {"test": self._framed(found.test, "test pairs", config.n_test)}
        if config.n_val:
            self.splits["val"] = Split(pool.pairs[train:], pool.streams[train:])
        if "seen" in found.more:
            self.splits["seen"] = self._framed(found.more["seen"], "seen pairs", config.n_test)
        self._epoch, self._batches = -1, torch.empty(0, 0, dtype=torch.int64)

    def _framed(self, pairs: Sequence[Pair], name: str, count: int) -> Split:
        """``count`` pairs in a random order, those that do not fit left out and counted by the frame."""
        order = torch.randperm(len(pairs), generator=seeds.generator(self.config.seed, name)).tolist()
        kept: list[tuple[Pair, Streams]] = []
        for index in order:
            streams = self.frame.streams(pairs[index]) if len(kept) < count else None
            if streams is not None:
                kept.append((pairs[index], streams))
        if len(kept) < min(count, 2):
            raise ConfigError(f"of {len(pairs)} {name} of '{self.config.recipe}' {len(kept)} fit into max_length "
                              f"{self.config.max_length}; raise max_length or choose shorter pairs.")
        return Split([pair for pair, _ in kept], [streams for _, streams in kept])

    def rows(self, step: int) -> list[int]:
        """Indices of the training pairs of a step: an epoch is a permutation in which a batch holds pairs of similar length."""
        epoch, place = divmod(step, len(self.train.streams) // self.config.batch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._order(epoch)
        return self._batches[place].tolist()

    def _order(self, epoch: int) -> torch.Tensor:
        draw = seeds.generator(self.config.seed, "order", epoch)
        size, lengths = self.config.batch, torch.tensor([len(each.full) + len(each.code) for each in self.train.streams])
        order = torch.randperm(len(lengths), generator=draw)[:len(lengths) // size * size]
        chunks = [chunk[lengths[chunk].argsort(descending=True, stable=True)] for chunk in order.split(CHUNK * size)]
        batches = torch.cat(chunks).view(-1, size)
        return batches[torch.randperm(len(batches), generator=draw)]

    def batch(self, streams: Sequence[Streams], *, jepa: bool, shuffled: bool = False) -> StreamBatch:
        """Some pairs in the run's layout; ``shuffled``: every Text faces the Code of the pair before it."""
        if jepa and shuffled:
            codes = [streams[-1].code, *(each.code for each in streams[:-1])]
            streams = [Streams(each.full, each.labels, each.text, code) for each, code in zip(streams, codes)]
        return lay_out(streams, self.config.layout, pad_id=self.frame.pad_id, jepa=jepa)

    def prompts(self, split: Split) -> list[list[int]]:
        """What generation starts from."""
        return [self.frame.prompt(pair.text, pair.system) for pair in split.pairs]

    def texts(self, answers_ids: list[list[int]]) -> list[str]:
        """Generated tokens as stripped text."""
        return [self.tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in answers_ids]

    def accuracy(self, rule: str, split: Split, texts: list[str]) -> float:
        """Share of right answers under a rule of :data:`jepa_nb.metrics.answers.RULES`, or by execution."""
        return sum(self._right(rule, pair, text) for pair, text in zip(split.pairs, texts)) / len(texts)

    def _right(self, rule: str, pair: Pair, generated: str) -> bool:
        if rule not in (EXECUTED, EXECUTED_PUBLISHED):
            return answers.RULES[rule](generated, pair.code)
        compare = queries.same_result if rule == EXECUTED else queries.published_same_result
        with contextlib.closing(self._database(pair)) as connection:
            return compare(connection, generated, pair.code)

    def _database(self, pair: Pair) -> sqlite3.Connection:
        """The data base that a question names: generated, or Spider's own file, opened read-only."""
        named = re.search(r"db_id:\[(.+?)\]", pair.text)
        if named is None:
            raise ConfigError(f"no 'db_id:[...]' in {pair.text!r}: a query is executed in the data base that its question names.")
        if self.config.recipe != "spider":
            return sql.database(named.group(1))
        file = (paths.local_data() or Path()) / "spider" / "database" / named.group(1) / f"{named.group(1)}.sqlite"
        if not file.is_file():
            raise DataError(f"{file} is missing: Spider's queries are executed; put its data bases there, or take rule 'exact'.")
        return sqlite3.connect(f"file:{file}?mode=ro", uri=True)
