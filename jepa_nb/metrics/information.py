"""Mutual information between prediction and target, in nats, by InfoNCE. Paper A, condition 1 and figure 2 (left).

InfoNCE can never show more than its cap, log(1 + negatives), so each estimate carries the cap. The paper's proxy compares
pooled vectors with a queue; condition 1 asks for I(z_C; z_T | p), which is :func:`infonce_mi` with ``groups=position``: there
a target is told apart only from targets at the same position, and knowing the position earns nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from jepa_nb.errors import CheckpointError, ConfigError, require_known
from jepa_nb.metrics.inputs import features, labels, real, require_finite, require_same_shape, unit

CRITICS = ("cosine", "distance")
TEMPERATURES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


class MI(NamedTuple):
    """An InfoNCE estimate: ``nats`` = max(0, ``cap`` - ``ce``).

    Attributes:
        nats: lower bound on the mutual information.
        cap: log(1 + negatives), the most that this estimate could show (mean over rows where they differ).
        ce: cross-entropy of picking the positive out of 1 + negatives.
    """

    nats: float
    cap: float
    ce: float


def infonce_from_logits(logits: Tensor) -> MI:
    """InfoNCE from scores (N, 1 + K), the positive in column 0; ``-inf`` marks an entry that is no negative of that row.

    Rows without any negative say nothing and are left out of the mean.

    Raises:
        ConfigError: no negative at all, or no matrix.
        NonFinite: a NaN or ``+inf``, or a positive that is not finite.
    """
    logits = real("logits", logits, axes=("N", "1 + K"), least=1)
    require_finite("logits[:, 0]", logits[:, :1])
    require_finite("logits", logits.masked_fill(logits == -torch.inf, 0.0))
    return _estimate(logits.logsumexp(1), logits[:, 0], (logits > -torch.inf).sum(1) - 1)


def infonce_mi(pred: Tensor, target: Tensor, *, temperature: float = 0.1, groups: Tensor | None = None,
               centre: bool = False, exclude: Tensor | None = None, critic: str = "cosine") -> MI:
    """InfoNCE between rows of ``pred`` (N, D) and ``target`` (N, D), logits critic / ``temperature``.

    Args:
        groups: (N,) integers; the negatives of a row are the targets of the other rows of its group. ``None``: one group.
            All groups are scored in one product (G, n, n), padded to the largest; :func:`equal_groups` makes them equal.
        centre: subtract the group's mean from both sides first. Without it a common offset fills the cosine and the estimate
            saturates near zero. The mean contains the row itself, which leaks about 1/n of a pair: use groups of 16 or more.
        exclude: (N,) sample ids; rows with one id are never each other's negatives.
        critic: ``"cosine"``, or ``"distance"``: minus the squared distance as a share of the mean squared norm of ``target``
            (of its variance, where centred). Cosine drops lengths, with which a few dimensions carry much of what they know;
            the distance is the log-density ratio of a Gaussian predictor, and suits one trained by squared error.

    Raises:
        UnknownName: unknown critic.
        ConfigError: shapes that disagree, a temperature that is not positive, or no row with a negative.
        NonFinite: a NaN or an infinity, named by argument.
    """
    pred, target = features("pred", pred), features("target", target)
    require_same_shape("pred", pred, "target", target)
    _require_temperature(temperature)
    require_known("critic", critic, CRITICS)
    groups = labels("groups", torch.zeros(len(pred), dtype=torch.long) if groups is None else groups, pred)
    index, present = _blocks(groups)
    left, right = pred[index], target[index]
    if centre:
        left, right = _centred_blocks(left, present), _centred_blocks(right, present)
    logits = _scores(left, right, present, critic) / temperature
    rival = present[:, None, :].expand_as(logits) & ~torch.eye(index.shape[1], dtype=torch.bool, device=index.device)
    if exclude is not None:
        sample = labels("exclude", exclude, pred)[index]
        rival = rival & (sample[:, :, None] != sample[:, None, :])
    positive = logits.diagonal(dim1=1, dim2=2)
    among = logits.masked_fill(~rival, -torch.inf)
    log_sum = torch.logaddexp(among.logsumexp(2), positive)
    return _estimate(log_sum[present], positive[present], rival.sum(2)[present])


def published_mi(z_c: Tensor, z_t: Tensor, queue: FeatureQueue, sample: Tensor, *, temperature: float = 0.1) -> MI:
    """The paper's proxy (A5): pooled context ``z_c`` (B, D) against its own target ``z_t`` (B, D) and a queue of other targets.

    It differs from the public code in one point. There the batch enters the queue before it is scored, so a copy of the
    positive sits among the negatives and the cross-entropy cannot fall below log 2. Here queue entries that carry the row's own
    id in ``sample`` (B,) are no negatives, and the function leaves the queue as it is: push ``z_t`` after scoring.

    Raises:
        ConfigError: shapes or widths that disagree, or a queue without any other sample (push one batch first).
        NonFinite: a NaN or an infinity, named by argument.
    """
    z_c, z_t = features("z_c", z_c, axes=("B", "D"), least=1), features("z_t", z_t, axes=("B", "D"), least=1)
    require_same_shape("z_c", z_c, "z_t", z_t)
    _require_temperature(temperature)
    sample = labels("sample", sample, z_c)
    entries, ids = queue.negatives()
    if entries.shape[1] != z_c.shape[1]:
        raise ConfigError(f"z_c has width {z_c.shape[1]} but the queue holds width {entries.shape[1]}.")
    anchor = unit(z_c)
    positive = (anchor * unit(z_t)).sum(1, keepdim=True)
    rivals = (anchor @ entries.to(anchor).T).masked_fill(sample[:, None] == ids.to(sample.device), -torch.inf)
    return infonce_from_logits(torch.cat([positive, rivals], 1) / temperature)


class FeatureQueue:
    """Ring of the last ``size`` unit-length target features with their sample ids (MoCo's queue; paper A: 2,048).

    ``state_dict`` holds tensors only, so that it fits into safetensors, and restores the ring bit for bit.
    """

    def __init__(self, size: int, width: int, *, device: torch.device | str = "cpu"):
        if size < 1 or width < 1:
            raise ConfigError(f"a queue needs a positive size and width, got {size} and {width}.")
        self.size, self.width = size, width
        self._features = torch.zeros(size, width, device=device)
        self._ids = torch.zeros(size, dtype=torch.long, device=device)
        self._pushed = 0

    def __len__(self) -> int:
        return min(self._pushed, self.size)

    def push(self, x: Tensor, ids: Tensor) -> None:
        """Add ``x`` (B, D) with ``ids`` (B,), overwriting the oldest entries; of a batch beyond ``size`` the last rows stay.

        Raises:
            ConfigError: another width than the queue's, or ids that do not fit.
            NonFinite: a NaN or an infinity in ``x``.
        """
        x = features("x", x, axes=("B", "D"), least=1)
        if x.shape[1] != self.width:
            raise ConfigError(f"x has width {x.shape[1]} but the queue holds width {self.width}.")
        ids = labels("ids", ids, x)
        kept = x[-self.size:]
        start = self._pushed + len(x) - len(kept)
        slots = torch.arange(start, start + len(kept), device=self._ids.device) % self.size
        self._features[slots] = unit(kept).to(self._features)
        self._ids[slots] = ids[-self.size:].to(self._ids)
        self._pushed += len(x)

    def negatives(self) -> tuple[Tensor, Tensor]:
        """Features (n, D) and ids (n,) held now, in ring order (not by age)."""
        return self._features[: len(self)], self._ids[: len(self)]

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of the ring, its ids, and the number of rows ever pushed (which says where the next one goes)."""
        return {"features": self._features.clone(), "ids": self._ids.clone(), "pushed": torch.tensor(self._pushed)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take over what :meth:`state_dict` gave.

        Raises:
            CheckpointError: missing entries or another size or width.
        """
        expected = {name: tuple(value.shape) for name, value in self.state_dict().items()}
        found = {name: tuple(value.shape) for name, value in state.items()}
        if found != expected:
            raise CheckpointError(f"a queue of shape {expected} cannot load {found}; build it with the saved size and width.")
        self._features.copy_(state["features"])
        self._ids.copy_(state["ids"])
        self._pushed = int(state["pushed"])


def equal_groups(groups: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Indices of a random subset of rows in which each group that is kept has exactly ``size`` rows: equal caps.

    Args:
        groups: (N,) integers. Groups with fewer than ``size`` rows are dropped.

    Returns:
        (G * size,) indices, group by group.

    Raises:
        ConfigError: ``size`` below 2, or no group that large.
    """
    if size < 2:
        raise ConfigError(f"size must be at least 2 (one positive, one negative), got {size}.")
    groups = labels("groups", groups, groups)
    shuffled = torch.randperm(len(groups), generator=generator, device=generator.device).to(groups.device)
    index, present = _blocks(groups[shuffled])
    large = present.sum(1) >= size
    if not bool(large.any()):
        raise ConfigError(f"no group has {size} rows, the largest has {index.shape[1]}; ask for fewer or pass more rows.")
    return shuffled[index[large, :size]].flatten()


def _estimate(log_sum: Tensor, positive: Tensor, negatives: Tensor) -> MI:
    telling = negatives > 0
    if not bool(telling.any()):
        raise ConfigError("no row has a negative to be told apart from; pass larger groups, or push other samples first.")
    ce = float((log_sum - positive)[telling].mean())
    cap = float(negatives[telling].double().log1p().mean())
    return MI(nats=max(0.0, cap - ce), cap=cap, ce=ce)


def _blocks(groups: Tensor) -> tuple[Tensor, Tensor]:
    """Row indices by group (G, n), n the largest group, and which of them are real; padding repeats some row."""
    order = groups.argsort(stable=True)
    sizes = groups[order].unique_consecutive(return_counts=True)[1]
    slot = torch.arange(int(sizes.max()), device=groups.device)
    index = order[(sizes.cumsum(0) - sizes)[:, None].add(slot).clamp(max=len(groups) - 1)]
    return index, slot < sizes[:, None]


def position_conditioned_mi(pred: Tensor, target: Tensor, position: Tensor, *, sample: Tensor | None = None,
                            temperature: float | None = None) -> MI:
    """I(z_C; z_T | p) of the paper's condition 1: predictions ``pred`` (N, D) against targets at the same position only.

    Args:
        pred, target: (N, D) predicted and true target states.
        position: (N,) position of each row; both sides are centred within a position, with the distance critic.
        sample: (N,) sample ids; rows of one sample are never each other's negatives.
        temperature: of the critic; ``None`` takes the tightest of :data:`TEMPERATURES` on these very rows, which flatters
            by one fitted number. Fit it on training data with :func:`tightest_temperature` where the difference matters.

    Raises as :func:`infonce_mi`.
    """
    if temperature is None:
        temperature = tightest_temperature(pred, target, position, sample=sample)
    return infonce_mi(pred, target, temperature=temperature, groups=position, centre=True, exclude=sample, critic="distance")


def tightest_temperature(pred: Tensor, target: Tensor, position: Tensor, *, sample: Tensor | None = None) -> float:
    """The temperature of :data:`TEMPERATURES` with the smallest cross-entropy in :func:`position_conditioned_mi`.

    A bound at a fixed temperature reads 0 where the prediction is right but less sure than the temperature says.
    """
    return min(TEMPERATURES, key=lambda each: position_conditioned_mi(pred, target, position, sample=sample, temperature=each).ce)


def _scores(left: Tensor, right: Tensor, present: Tensor, critic: str) -> Tensor:
    """(G, n, n) score of each prediction with each target of its group."""
    if critic == "cosine":
        return unit(left) @ unit(right).mT
    scale = right[present].square().sum(1).mean()
    return -torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist").square() / scale.where(scale > 0, 1.0)


def _centred_blocks(x: Tensor, present: Tensor) -> Tensor:
    weight = present[..., None].to(x)
    return x - (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)


def _require_temperature(temperature: float) -> None:
    if not 0 < temperature < float("inf"):
        raise ConfigError(f"temperature must be a positive number, got {temperature}.")
