"""Every notebook and the runs that it reads, without torch: what the workflow plans from before any kernel starts.

A notebook describes itself in its metadata, so a new one needs no entry here::

    "jepa_nb": {"headline": true, "experiment": "paradox.diagnostics", "arms": ["scaled"], "figure": "paradox_fig3_loss_divergence",
                "seconds": {"smoke": 6, "laptop": 20}}
"""

from __future__ import annotations

import fnmatch
import importlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jepa_nb import config, paths, provenance
from jepa_nb.device import resolve
from jepa_nb.errors import ConfigError, UnknownName, require_known
from jepa_nb.provenance import RunContext
from jepa_nb.training import store

START = "00_start_here"
JOBS = {"llm_jepa.finetune": "jepa_nb.experiments.llm_jepa.jobs", "paradox.diagnostics": "jepa_nb.experiments.paradox.jobs"}


@dataclass(frozen=True)
class NotebookSpec:
    """What a notebook says of itself.

    Attributes:
        name: ``<folder>/<stem>``, or the stem at top level.
        path: its source.
        headline: whether the default set includes it.
        figure: name of the figure it saves, or ``""``.
        experiment: experiment whose runs it reads, or ``""``.
        arms: arms of the experiment it reads.
        seconds: expected seconds of the notebook itself per tier, runs apart.
        seeds: the notebook's own seeds, where no experiment gives them.
        choices: further parameters of this notebook alone (which definition to draw, say) with their default values.
    """

    name: str
    path: Path
    headline: bool
    figure: str
    experiment: str
    arms: tuple[str, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlannedRun:
    """A run that a tier needs: its key, a readable label, planned seconds, keys it builds on, recipes it reads."""

    key: str
    label: str
    seconds: float
    needs: tuple[str, ...]
    recipes: tuple[tuple[str, str], ...]


def notebooks() -> dict[str, NotebookSpec]:
    """All notebooks by name, ``00_start_here`` first, headline ones next.

    Raises:
        ConfigError: a notebook has no ``jepa_nb`` metadata.
    """
    found = [_read(path) for path in sorted(paths.notebooks().rglob("*.ipynb")) if ".ipynb_checkpoints" not in path.parts]
    found.sort(key=lambda spec: (spec.name != START, not spec.headline, spec.name))
    return {spec.name: spec for spec in found}


def _read(path: Path) -> NotebookSpec:
    name = path.relative_to(paths.notebooks()).with_suffix("").as_posix()
    try:
        about = json.loads(path.read_text(encoding="utf-8"))["metadata"]["jepa_nb"]
    except (ValueError, KeyError) as error:
        raise ConfigError(f"notebook '{name}' cannot be planned: its metadata has no readable 'jepa_nb' entry ({error}).") from error
    return NotebookSpec(name, path, about["headline"], about.get("figure") or "", about.get("experiment") or "",
                        tuple(about.get("arms", ())), about.get("seconds", {}), about.get("choices", {}),
                        tuple(about.get("seeds", ())))


def select(only: str = "", everything: bool = False) -> list[NotebookSpec]:
    """Notebooks that a name or glob on ``<folder>/<stem>`` picks; without one the headline set, or all of them.

    Raises:
        UnknownName: nothing matches; the nearest name is offered.
    """
    known = notebooks()
    if not only:
        return [spec for spec in known.values() if everything or spec.headline]
    chosen = [spec for name, spec in known.items() if fnmatch.fnmatch(name, only) or name.rpartition("/")[2] == only]
    if not chosen:
        raise UnknownName("notebook", only, known)
    return chosen


def jobs(spec: NotebookSpec, tier: str, **changes: Any) -> list[Any]:
    """The jobs of a notebook; ``changes`` are the keyword arguments of the experiment's ``jobs`` function."""
    if not spec.experiment:
        return []
    return _module(spec.experiment).jobs(config.resolve_tier(tier), list(spec.arms), **changes)


def plan(name: str, tier: str) -> list[PlannedRun]:
    """Runs that a notebook reads at a tier, those that others build on first.

    Raises:
        UnknownName: unknown notebook or tier.
    """
    known = notebooks()
    if name not in known:
        raise UnknownName("notebook", name, known)
    ordered: dict[str, PlannedRun] = {}
    for job in jobs(known[name], tier):
        for each in (*job.needs, job):
            ordered.setdefault(each.spec.key, PlannedRun(each.spec.key, each.label, each.seconds,
                                                         tuple(need.spec.key for need in each.needs), each.recipes))
    return list(ordered.values())


def run(keys: Iterable[str], tier: str) -> list[store.Run]:
    """Train the planned runs with these keys, in the order given, in this process.

    Raises:
        UnknownName: a key that no notebook plans at this tier (the code or the configuration may have changed since).
    """
    known = {each.spec.key: each for spec in notebooks().values() for job in jobs(spec, tier) for each in (*job.needs, job)}
    missing = [key for key in keys if key not in known]
    if missing:
        raise UnknownName(f"run of tier '{tier}' (see 'python -m jepa_nb run --plan')", missing[0], known)
    return [known[key].run() for key in keys]


def code_fingerprint(name: str) -> str:
    """Fingerprint of the code that a notebook calls: its experiment's modules with figures, tables and measurements."""
    spec = notebooks()[name]
    modules = _module(spec.experiment).NOTEBOOK_MODULES if spec.experiment else ("jepa_nb.figures",)
    return provenance.code_fingerprint(modules)


def context(notebook: str, *, tier: str = "default", seeds: list[int] | None = None, device: str = "auto",
            source: str = "embedded", overrides: dict[str, Any] | None = None, output_dir: str = "", **choices: Any) -> RunContext:
    """Resolve a notebook's parameters, print what was chosen and why, and return it (cell 4 of every notebook).

    ``choices`` are parameters of that notebook alone; those that differ from its defaults are recorded.

    Raises:
        UnknownName: unknown notebook, tier, device, source or choice.
        ConfigError: a parameter of the wrong type (papermill's ``-p`` passes lists and dicts as text: use ``-y``).
    """
    known = notebooks()
    if notebook not in known:
        raise UnknownName("notebook", notebook, known)
    for name, value, kind in (("seeds", seeds or [], list), ("overrides", overrides or {}, dict)):
        if not isinstance(value, kind):
            raise ConfigError(f"parameter '{name}' must be a {kind.__name__}, got {type(value).__name__} {value!r}; on papermill's "
                              f"command line pass it with -y \"{{{name}: ...}}\".")
    if any(type(seed) is not int for seed in seeds or []):
        raise ConfigError(f"parameter 'seeds' must hold whole numbers, got {seeds!r}.")
    chosen = config.resolve_tier(tier)
    resolved = resolve(device)
    spec = known[notebook]
    changed = {require_known("choice", name, spec.choices): value for name, value in choices.items() if value != spec.choices.get(name)}
    planned = jobs(spec, chosen, seeds=seeds, overrides=overrides, device=device, source=source)
    found = RunContext(
        notebook=notebook, tier=chosen, seeds=tuple(sorted({job.seed for job in planned})) or tuple(seeds or spec.seeds), resolved=resolved,
        parameters={"tier": tier, "seeds": list(seeds or []), "device": device, "source": source, "overrides": dict(overrides or {}),
                    "choices": changed},
        overrides=dict(overrides or {}), data={name: mark for job in planned for name, mark in job.data.items()},
        code=code_fingerprint(notebook), output_dir=Path(output_dir) if output_dir else None)
    print(_describe(found, planned))
    return found


def _describe(found: RunContext, planned: list[Any]) -> str:
    trained = sum(store.is_finished(job.spec.key) for job in planned)
    lines = [f"tier     {found.tier}", f"device   {found.resolved.device}, {found.resolved.dtype}, attention "
             f"{found.resolved.attention}, {found.resolved.threads} thread(s)  ({found.resolved.why})"]
    if planned:
        lines += [f"seeds    {', '.join(map(str, found.seeds))}",
                  f"runs     {len(planned)}, of which {trained} are in the store",
                  "data     " + ", ".join(f"{name} {mark[:8]}" for name, mark in sorted(found.data.items()))]
    return "\n".join(lines)


def _module(experiment: str) -> Any:
    if experiment not in JOBS:
        raise UnknownName("experiment", experiment, JOBS)
    return importlib.import_module(JOBS[experiment])

