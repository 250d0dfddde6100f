"""Time and memory of one LLM-JEPA training step in our layouts, beside the public code's two layouts re-enacted from their description.

Published: everything is padded to 512 tokens; either three rows a pair (Text with Code, Text, Code), or two rows with an additive mask built
in Python loops; logits are computed at every token. Ours: rows as long as the longest, logits where a label is predicted. All give the same
loss and gradient to 1e-5, which is checked before anything is timed. ``--smollm2`` times SmolLM2-135M-Instruct as well.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import LlamaForCausalLM, PreTrainedModel

from jepa_nb import device as devices
from jepa_nb.masking.streams import IGNORED, LAYOUTS, Streams, lay_out
from jepa_nb.models.language import tiny_llama
from jepa_nb.training.llm_jepa import JEPATerms, losses

MODEL = dict(vocab_size=8192, width=256, depth=4, heads=4, max_length=512, seed=0)
LENGTHS = (96, 60, 40)  # tokens of Text with Code, Text with its predictor token, and Code alone
PADDED, BATCH, LAM = 512, 4, 1.0
GOALS = {"three rows": 6.0, "additive mask": 3.5}
GOAL_S = 0.10
Step = Callable[[PreTrainedModel, list[Streams]], Tensor]


def pairs(vocab: int, count: int = BATCH, lengths: tuple[int, int, int] = LENGTHS) -> list[Streams]:
    """Random pairs of given lengths: Text's tokens begin both the full stream and its own, Code's end the full stream."""
    draw = torch.Generator().manual_seed(1)
    full, text, code = lengths
    rows = torch.randint(8, vocab, (count, full), generator=draw).tolist()
    return [Streams(tuple(row), (*[IGNORED] * (full - code), *row[full - code:]), (*row[:text - 1], 7), (6, *row[full - code + 1:])) for row in rows]


def _padded(rows: list[tuple[int, ...]], fill: int) -> Tensor:
    return torch.tensor([[*row, *[fill] * (PADDED - len(row))] for row in rows])


def _loss(logits: Tensor, labels: Tensor, text: Tensor, code: Tensor) -> Tensor:
    ntp = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten(), ignore_index=IGNORED)
    return ntp + LAM * (1 - F.cosine_similarity(text.float(), code.float()).mean())


def three_rows(model: PreTrainedModel, examples: list[Streams]) -> Tensor:
    """The public default: the three streams as rows of their own."""
    streams = [each.full for each in examples] + [each.text for each in examples] + [each.code for each in examples]
    lengths = torch.tensor([len(row) for row in streams])
    found = model(input_ids=_padded(streams, 0), attention_mask=(torch.arange(PADDED) < lengths[:, None]).long(), output_hidden_states=True)
    last = found.hidden_states[-1][torch.arange(len(streams)), lengths - 1]
    count = len(examples)
    return _loss(found.logits[:count], _padded([each.labels for each in examples], IGNORED), last[count:2 * count], last[2 * count:])


def additive_mask(model: PreTrainedModel, examples: list[Streams]) -> Tensor:
    """The public ``--additive_mask``: a plain row, and a row of Text then Code that do not see each other; positions run on."""
    count = len(examples)
    streams = [each.full for each in examples] + [each.text + each.code for each in examples]
    least = torch.finfo(torch.float32).min
    mask = torch.full((2 * count, 1, PADDED, PADDED), least)
    for row, each in enumerate(streams):
        causal = torch.full((len(each), len(each)), least).triu(1)
        mask[row, 0, :len(each), :len(each)] = causal
        if row >= count:
            text = len(examples[row - count].text)
            mask[row, 0, text:len(each), :text] = least
        mask[row, 0].fill_diagonal_(0.0)
    found = model(input_ids=_padded(streams, 0), attention_mask=mask.to(model.dtype), output_hidden_states=True)
    hidden, rows = found.hidden_states[-1], torch.arange(count, 2 * count)
    text = torch.tensor([len(each.text) for each in examples])
    code = torch.tensor([len(each.code) for each in examples])
    return _loss(found.logits[:count], _padded([each.labels for each in examples], IGNORED), hidden[rows, text - 1], hidden[rows, text + code - 1])


def ours(model: PreTrainedModel, examples: list[Streams], layout: str) -> Tensor:
    """One of our layouts."""
    return losses(model, lay_out(examples, layout, pad_id=0), JEPATerms(lam=LAM, layout=layout)).total


STEPS: dict[str, Step] = {"three rows": three_rows, "additive mask": additive_mask} | {
    layout: functools.partial(ours, layout=layout) for layout in LAYOUTS}


def gradient(model: PreTrainedModel, step: Step, examples: list[Streams]) -> tuple[Tensor, Tensor]:
    """Loss and gradient, in one vector."""
    model.zero_grad(set_to_none=True)
    loss = step(model, examples)
    loss.backward()
    return loss.detach(), torch.cat([value.grad.flatten() for value in model.parameters() if value.grad is not None])


def check_equal(model: PreTrainedModel, examples: list[Streams], tolerance: float = 1e-5) -> None:
    """Every layout has the loss and the gradient of the first."""
    loss, wanted = gradient(model, three_rows, examples)
    for name, step in STEPS.items():
        found, got = gradient(model, step, examples)
        assert abs(float(found - loss)) <= tolerance * abs(float(loss)), f"{name}: loss {found} instead of {loss}"
        assert float((got - wanted).norm()) <= tolerance * float(wanted.norm()), f"{name}: another gradient"


def seconds(model: PreTrainedModel, examples: list[Streams], rounds: int) -> dict[str, list[float]]:
    """Seconds of forward and backward of each layout in turn, ``rounds`` times, after one round that is not counted."""
    spent: dict[str, list[float]] = {name: [] for name in STEPS}
    for number in range(rounds + 1):
        for name, step in STEPS.items():
            started = time.perf_counter()
            gradient(model, step, examples)
            if number:
                spent[name].append(time.perf_counter() - started)
    return spent


def peak_mib(name: str) -> float:
    """MiB that one step adds to the resident memory of a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_grown, (name,))


def _grown(name: str) -> float:
    model = tiny_llama(**MODEL)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gradient(model, STEPS[name], pairs(MODEL["vocab_size"]))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def report(title: str, model: PreTrainedModel, examples: list[Streams], rounds: int) -> dict[str, float]:
    """Print a line a layout; return median seconds."""
    spent = {name: statistics.median(times) for name, times in seconds(model, examples, rounds).items()}
    useful = sum(len(each.full) for each in examples)
    for name, median in spent.items():
        print(f"{title}, {name}: {median:.3f} s a step, {useful / median:.0f} tokens of Text with Code a second")
    return spent


def smollm2() -> PreTrainedModel:
    """The embedded SmolLM2-135M-Instruct in float32, all weights trained."""
    from jepa_nb.models import pretrained

    return pretrained.load("smollm2", "embedded")[0]


def tiny() -> LlamaForCausalLM:
    """The small Llama of the comparison."""
    return tiny_llama(**MODEL).eval()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smollm2", action="store_true", help="also time SmolLM2-135M-Instruct (about 5 minutes)")
    asked = parser.parse_args()
    with devices.threads(2):
        model, examples = tiny(), pairs(MODEL["vocab_size"])
        check_equal(model, examples)
        spent = report("small Llama, batch 4, 2 threads", model, examples, rounds=7)
        for name, goal in GOALS.items():
            ratio = spent[name] / spent["shared_prefix"]
            print(f"shared_prefix is {ratio:.1f} times as fast as {name} padded to {PADDED} (goal {goal}: {'met' if ratio >= goal else 'missed'})")
        print(f"shared_prefix: {spent['shared_prefix']:.3f} s (goal {GOAL_S}: {'met' if spent['shared_prefix'] <= GOAL_S else 'missed'})")
        for name in STEPS:
            print(f"{name}: one step adds {peak_mib(name):.0f} MiB")
        if asked.smollm2:
            large = smollm2()
            examples = pairs(large.config.vocab_size)
            check_equal(large, examples, tolerance=1e-4)
            report("SmolLM2-135M-Instruct, batch 4, 2 threads", large, examples, rounds=2)
