"""Paper C: sizes of the four tiers. No torch.

``paper`` is the published protocol (sheet C4): Llama-3.2-1B-Instruct, 4 epochs, a global batch of 128, AdamW with linear decay and no
warm-up, clip 1. The other tiers keep its objective and its pairs' form and change model, number of pairs and steps. A small model
trained from scratch takes a higher rate and a short warm-up, and both arms take the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

EXPERIMENT = "llm_jepa.finetune"


@dataclass(frozen=True)
class Finetune:
    """One training of a causal language model on (Text, Code) pairs, with its evaluation along it."""

    seed: int = 0
    # data
    recipe: str = "nl_rx_synth"
    source: str = "generated"
    vocab_recipes: tuple[str, ...] = ()  # byte-level vocabulary of these recipes together; empty: of the run's own
    n_train: int = 2000
    n_val: int = 96  # held out of the training pairs, for choosing settings
    n_test: int = 256
    rule: str = "exact"
    # model
    pretrained: str = ""  # recipe of the weights; empty: a small Llama from scratch
    start: str = ""  # arm whose final weights it goes on from
    vocab_size: int = 512
    width: int = 128
    depth: int = 2
    heads: int = 4
    max_length: int = 160
    lora_rank: int = 0  # 0: all weights are trained
    # objective (Paper C, eq. of C1): gamma * NTP + lam * JEPA
    gamma: float = 1.0
    lam: float = 0.0
    k: int = 0
    distance: str = "cosine"
    pooling: str = "last"
    placement: str = "append"
    direction: str = "text_to_code"
    identical: bool = False
    linear_predictor: bool = False
    loss_dropout: float = 0.0
    layout: str = "shared_prefix"
    shuffled: bool = False  # control: each Text is drawn towards another pair's Code
    label_policy: str = "answer_only"
    accumulation: str = "normalised"
    accumulate: int = 1
    # optimisation
    epochs: int = 4
    batch: int = 16
    lr: float = 2e-3
    warmup: float = 0.1  # share of the steps
    clip: float = 1.0
    # evaluation
    eval_epochs: int = 1
    max_new_tokens: int = 48
    n_views: int = 200  # test pairs whose two views are compared
    log_every: int = 5

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps per pass over the pairs (the last, smaller batch is dropped)."""
        return self.n_train // self.batch

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole training."""
        return self.epochs * self.steps_per_epoch

    def eval_steps(self) -> list[int]:
        """Numbers of steps done at which the run is evaluated: 0, then every ``eval_epochs`` epochs, and the end."""
        every = self.eval_epochs * self.steps_per_epoch
        return sorted({*range(0, self.steps + 1, every), self.steps})


@dataclass(frozen=True)
class Tier:
    """One row of the dial: the base configurations by name and the seeds of each; bases that are not named have ``seeds``."""

    bases: dict[str, Finetune]
    headline_seeds: tuple[int, ...]
    seeds: tuple[int, ...]


HEADLINE, SINGLE = "main", "smol"  # the base with the headline's seeds, and the one with a single seed

PAPER = Finetune(
    source="local", n_train=8000, n_val=0, n_test=2000, pretrained="llama_3_2_1b", max_length=512, batch=128, lr=2e-5, warmup=0.0,
    max_new_tokens=128, n_views=1000)


def published(base: Finetune) -> dict[str, Finetune]:
    """The bases of a tier with pretrained models; ``sweep`` is the main one, as in the paper."""
    scratch = replace(base, pretrained="", vocab_size=4096, width=2048, depth=16, heads=32, lr=8e-5, rule="startswith")
    verses = replace(scratch, recipe="paraphrase", source="embedded", vocab_recipes=("paraphrase", "rotten_tomatoes"), n_train=27_000)
    return {
        "main": base, "sweep": replace(base, n_train=7800, n_val=200),
        "turk": replace(base, recipe="nl_rx_turk"),
        "sql": replace(base, recipe="spider", n_train=6587, n_test=1447, rule="execution"),
        "word": replace(base, recipe="gsm8k", source="hub", n_train=7473, n_test=1319, rule="gsm8k", max_new_tokens=512),
        "large": replace(base, n_train=8000), "small": replace(base, n_train=1000, epochs=32),
        "qwen": replace(base, recipe="gsm8k", source="hub", pretrained="qwen3_1_7b", n_train=7473, n_test=1319, rule="gsm8k", max_new_tokens=512),
        "distill": replace(base, recipe="gsm8k", source="hub", pretrained="r1_distill_qwen_1_5b", n_train=7473, n_test=1319, rule="gsm8k",
                           max_new_tokens=512),
        "gemma": replace(base, pretrained="gemma_2_2b"), "olmo": replace(base, pretrained="olmo_2_1b"),
        "scratch": scratch, "verses": verses,
        "sentiment": replace(verses, recipe="rotten_tomatoes", source="hub", n_train=8530, n_test=1066, max_new_tokens=8),
        "yelp": replace(verses, recipe="yelp", source="hub", n_train=8000, n_test=2000, max_new_tokens=8),
        "grounds": replace(base, n_train=4000, epochs=1), "adapters": base,
        "smol": replace(base, recipe="nq_open", n_train=8000, n_test=1769, rule="nq_open"),
        "choice": replace(base, recipe="hellaswag", source="hub", n_train=39_905, n_test=2000, rule="choice", max_new_tokens=1)}


LAPTOP_MAIN = Finetune()
LAPTOP_SWEEP = replace(LAPTOP_MAIN, width=64, batch=8, lr=3e-3, n_train=1200, n_test=200)
LAPTOP_VERSES = replace(
    LAPTOP_SWEEP, recipe="paraphrase", source="embedded", vocab_recipes=("paraphrase", "rotten_tomatoes"), vocab_size=2048, n_train=2000,
    epochs=1, batch=16, max_length=224, max_new_tokens=1, rule="startswith", n_test=32)
LAPTOP = {
    "main": LAPTOP_MAIN, "sweep": LAPTOP_SWEEP,
    "sql": replace(LAPTOP_SWEEP, recipe="sql_world", rule="execution"), "word": replace(LAPTOP_MAIN, recipe="word_problems", n_train=3000, n_test=200, rule="gsm8k", max_new_tokens=64),
    "large": replace(LAPTOP_SWEEP, n_train=4800, epochs=1),
    "verses": LAPTOP_VERSES,
    "sentiment": replace(LAPTOP_VERSES, recipe="rotten_tomatoes", n_train=2000, n_test=500, max_new_tokens=4, epochs=2),
    "grounds": replace(LAPTOP_SWEEP, n_train=1000, epochs=1), "adapters": replace(LAPTOP_SWEEP, epochs=3),
    "smol": replace(LAPTOP_MAIN, recipe="nq_open", source="embedded", pretrained="smollm2", n_train=160, n_val=16, n_test=64, rule="nq_open",
                    lora_rank=16, epochs=2, eval_epochs=2, batch=8, lr=2e-4, max_length=96, max_new_tokens=16, n_views=64)}

_SMOKE = Finetune(recipe="toy_pairs", n_train=32, n_val=8, n_test=8, vocab_size=320, width=16, depth=1, heads=2, epochs=1, batch=16,
                  max_new_tokens=4, n_views=8, log_every=1)
SMOKE = {name: replace(_SMOKE, rule="exact" if base.rule == "execution" else base.rule, lora_rank=4 if base.lora_rank else 0, vocab_recipes=()) for name, base in LAPTOP.items()}

TIERS = {
    "smoke": Tier(SMOKE, (0, 1), (0, 1)),
    "laptop": Tier(LAPTOP, (0, 1, 2, 3, 4), (0, 1, 2)),
    "gpu": Tier(published(replace(PAPER, batch=32)), (0, 1, 2, 3, 4), (0, 1, 2)),
    "paper": Tier(published(PAPER), (82, 23, 37, 84, 4), (82, 23, 37, 84, 4))}
