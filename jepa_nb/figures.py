"""Figures: one style, the shared drawing helpers, and saving a figure with everything needed to trust and redraw it.

:func:`save` writes PNG, SVG, PDF, the tidy CSV under the plot and a JSON sidecar. All five are the same bytes when nothing
changed (one machine, one lock): no time, commit or path stands in them. Those go to ``build/<tier>/provenance``.
"""

from __future__ import annotations

import datetime
import json
import platform
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jepa_nb import files, ledger, papers, paths, provenance
from jepa_nb.errors import ConfigError, NonFinite, require_known
from jepa_nb.ledger import Verdict
from jepa_nb.looks import EVENT, REPORTED, look
from jepa_nb.provenance import RunContext

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

STYLE_FILE = Path(__file__).with_name("figures.mplstyle")
WIDTHS = {"column": 3.35, "text": 6.9}  # inches
CSV_FLOATS = "%.8g"
_NO_DATES = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
SPLITS = {"train": {"linewidth": 0.9, "alpha": 0.75, "marker": ""}, "val": {"linewidth": 2.0, "alpha": 1.0}}


@contextmanager
def style() -> Iterator[None]:
    """The house style inside the block. Draw inside it, since titles, labels and legends read the style when they are made;
    it also decorates a drawing function: ``@figures.style()``."""
    import matplotlib

    with matplotlib.rc_context(fname=STYLE_FILE):
        yield


def canvas(rows: int = 1, columns: int = 1, *, width: str | float = "text", height: float = 2.7,
           **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes, ``width`` in inches or by name, ``height`` in inches; draw on it inside :func:`style`.

    The figure does not belong to pyplot: nothing has to be closed, and a notebook shows what :func:`save` returns.

    Raises:
        UnknownName: unknown name of a width.
    """
    from matplotlib.figure import Figure

    inches = WIDTHS[require_known("width", width, WIDTHS)] if isinstance(width, str) else width
    figure = Figure(figsize=(inches, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def curve(ax: Axes, table: pd.DataFrame, x: str, y: str, method: str, *, seed: str = "seed", split: str = "val",
          label: str | None = None, dash: Any = None) -> Line2D:
    """Mean over seeds of ``y`` against ``x`` with the 95 % Student interval as a band; train thin, validation bold.

    Rows without a ``y`` were not measured there and are left out. On a logarithmic axis mean and interval are those of the
    logarithm. A point with one seed has no band.

    Raises:
        UnknownName: unknown method or split. NonFinite: an infinity. ConfigError: nothing to draw, two values for one seed
        and ``x``, or values that a logarithmic axis cannot show.
    """
    appearance, line = look(method), dict(SPLITS[require_known("split", split, SPLITS)])
    points = _bands(table, x, y, seed, log=ax.get_yscale() == "log")
    line = {"marker": appearance.marker, "markevery": max(1, len(points) // 8)} | line
    drawn, = ax.plot(points.index, points["mean"], color=appearance.color, linestyle=dash or appearance.dash,
                     label=label or f"{method}, {split}", **line)
    ax.fill_between(points.index, points["low"], points["high"], color=appearance.color, linewidth=0,
                    alpha=0.08 if split == "train" else 0.18)
    return drawn


def _bands(table: pd.DataFrame, x: str, y: str, seed: str, *, log: bool) -> pd.DataFrame:
    """Columns mean, low, high over seeds, indexed by ``x``."""
    import numpy as np
    from scipy.special import stdtrit

    rows = table[[x, y, seed]].dropna(subset=[y])
    if rows.empty:
        raise ConfigError(f"there is no value of '{y}' to draw; look whether the run logged it.")
    if not np.isfinite(rows[y]).all():
        raise NonFinite(f"'{y}' holds an infinity; look for the run that produced it.")
    if rows.duplicated([x, seed]).any():
        raise ConfigError(f"'{y}' has several values for one {seed} and {x}; select one arm, split and metric first.")
    if log and (rows[y] <= 0).any():
        raise ConfigError(f"'{y}' is not positive everywhere and cannot stand on a logarithmic axis.")
    values = rows.assign(value=np.log(rows[y]) if log else rows[y]).groupby(x)["value"].agg(["mean", "std", "count"])
    half = stdtrit(values["count"] - 1, 0.975) * values["std"] / np.sqrt(values["count"])
    bands = values[["mean"]].assign(low=values["mean"] - half, high=values["mean"] + half)
    return np.exp(bands) if log else bands


def reported(ax: Axes, value: float, label: str, *, high: float | None = None) -> None:
    """The paper's value as a labelled horizontal line, or its range from ``value`` to ``high`` as a labelled band."""
    from matplotlib.patheffects import withStroke

    if high is None:
        ax.axhline(value, color=REPORTED, linestyle=(0, (2, 2)), linewidth=1.0, zorder=1)
    else:
        ax.axhspan(value, high, color=REPORTED, alpha=0.10, linewidth=0, zorder=0)
    ax.annotate(label, (0.985, value if high is None else high), xycoords=("axes fraction", "data"), xytext=(0, 2),
                textcoords="offset points", ha="right", va="bottom", fontsize=7, color=REPORTED, zorder=5,
                path_effects=[withStroke(linewidth=2, foreground="white")])


def log_ticks(ax: Axes) -> None:
    """Few and plain labels on a logarithmic y-axis: 1, 2, 5, 10 where it spans less than two decades, else powers of ten.
    Call it when everything is drawn."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = ax.get_ylim()
    ax.yaxis.set_minor_formatter(NullFormatter())
    if high < 100 * low:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")


def event(ax: Axes, at: float, label: str = "") -> None:
    """The paper's red dashed line at the instability, with the time after it shaded."""
    ax.axvline(at, color=EVENT, linestyle=(0, (4, 2)), linewidth=0.9, zorder=1)
    ax.axvspan(at, max(at, ax.get_xlim()[1]), color=EVENT, alpha=0.05, linewidth=0, zorder=0)
    if label:
        ax.annotate(label, (at, 0.99), xycoords=("data", "axes fraction"), xytext=(3, 0), textcoords="offset points",
                    va="top", fontsize=7, color=EVENT)


def scale_note(fig: Figure, context: RunContext, extra: str = "") -> None:
    """Name the scale of the run under the plot: tier, seeds, what the bands are, and ``extra`` on lines of its own."""
    count = len(context.seeds)
    bands = "mean and 95 % t interval over " if count > 1 else ""
    text = f"{context.tier} tier · {bands}{count} seed{'s' if count != 1 else ''}" + (f"\n{extra}" if extra else "")
    fig.supxlabel(text, x=0.995, ha="right", fontsize=6.5, color="#666666")


@dataclass(frozen=True)
class Saved:
    """Paths of one saved figure. A notebook shows the PNG as it was saved."""

    name: str
    folder: Path

    def path(self, suffix: str) -> Path:
        """Path of one file: ``png``, ``svg``, ``pdf``, ``csv`` or ``json``."""
        return self.folder / f"{self.name}.{suffix}"

    def _repr_png_(self) -> bytes:
        return self.path("png").read_bytes()


def save(name: str, fig: Figure, table: pd.DataFrame, verdicts: Sequence[Verdict], *, context: RunContext, finding: str = "",
         title: str = "", may_be_missing: Collection[str] = ()) -> Saved:
    """Write ``<name>.{png,svg,pdf,csv,json}``, each whole or not at all, the sidecar last.

    Args:
        name: the figure's name, listed in its paper's claims file (``paradox_fig2_mi_and_rank``); with ``title`` any name.
        table: the tidy data under the plot.
        verdicts: judged claims of this figure.
        finding: what the figure shows, in one sentence.
        may_be_missing: columns of ``table`` that may hold NaN (never an infinity).

    Raises:
        UnknownName: the name is in no claims file and has no title.
        ConfigError: a repeated column or claim, a claim of another figure, or a name that another notebook has saved.
        NonFinite: a NaN or an infinity in the table.
    """
    saved = Saved(name, context.figures)
    _require_own_name(saved, context)
    _require_clean(table, may_be_missing)
    _require_own_claims(name, verdicts)
    sidecar = _sidecar(name, verdicts, context, finding, title)
    with style():
        fig.draw_without_rendering()
        fig.set_layout_engine("none")  # laid out once, not again for each format
        for suffix, metadata in _NO_DATES.items():
            with files.atomic(saved.path(suffix)) as temporary:
                fig.savefig(temporary, metadata=metadata)
    files.write_text(saved.path("csv"), table.to_csv(index=False, float_format=CSV_FLOATS, lineterminator="\n"))
    files.write_text(saved.path("json"), _json(sidecar))
    if context.output_dir is None:
        _write_provenance(name, context)
    return saved


def _sidecar(name: str, verdicts: Sequence[Verdict], context: RunContext, finding: str, title: str) -> dict[str, Any]:
    known = {key: figure for paper in papers.names() for key, figure in papers.paper(paper).figures.items()}
    if not title:
        require_known("figure", name, known)
    figure = known.get(name) or papers.PaperFigure(name, title, "none", "none")
    parameters = {key: value for key, value in context.parameters.items() if key != "output_dir"}
    return {
        "name": name, "title": title or figure.title, "paper_item": figure.item, "known_from": figure.known_from,
        "finding": finding, "notebook": context.notebook, "tier": context.tier, "seeds": list(context.seeds),
        "device": context.resolved.key(), "parameters": parameters, "overrides": context.overrides, "data": context.data,
        "code": context.code, "versions": provenance.versions(), "csv_floats": CSV_FLOATS,
        "stand_ins": sorted({verdict.standin for verdict in verdicts if verdict.standin}),
        "verdicts": [verdict.record() for verdict in verdicts]}


def _write_provenance(name: str, context: RunContext) -> None:
    """What must not stand in the sidecar: when, where and from which commit."""
    record = {"commit": provenance.commit(), "saved": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
              "machine": platform.platform(), "device": context.resolved.why}
    files.write_text(paths.tier_build(context.tier) / "provenance" / f"{name}.json", _json(record))


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _require_own_name(saved: Saved, context: RunContext) -> None:
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", saved.name):
        raise ConfigError(f"figure name '{saved.name}' must be lower-case words joined by '_', without an extension.")
    if saved.path("json").exists():
        owner = ledger.read_sidecar(saved.path("json")).get("notebook")
        if owner != context.notebook:
            raise ConfigError(f"figure '{saved.name}' was saved by notebook '{owner}', not '{context.notebook}'; names are "
                              f"unique, choose another or delete {saved.path('json').name}.")


def _require_clean(table: pd.DataFrame, may_be_missing: Collection[str]) -> None:
    import numpy as np

    repeated = table.columns[table.columns.duplicated()].tolist()
    if repeated:
        raise ConfigError(f"the table repeats the name of a column: {', '.join(map(str, repeated))}; rename it.")
    for column in may_be_missing:
        require_known("column", column, table.columns)
    for column in table.columns:
        missing = table[column].isna()
        if missing.any() and column not in may_be_missing:
            raise NonFinite(f"column '{column}' holds {int(missing.sum())} missing values; drop those rows or list it in "
                            "may_be_missing.")
        if table[column].dtype.kind == "f" and np.isinf(table[column]).any():
            raise NonFinite(f"column '{column}' holds an infinity; look for the run that produced it.")


def _require_own_claims(name: str, verdicts: Sequence[Verdict]) -> None:
    ids = [verdict.claim.id for verdict in verdicts]
    for verdict in verdicts:
        if verdict.claim.figure != name:
            raise ConfigError(f"claim '{verdict.claim.id}' is tested by figure '{verdict.claim.figure}', not by '{name}'.")
        if ids.count(verdict.claim.id) > 1:
            raise ConfigError(f"claim '{verdict.claim.id}' is judged twice in figure '{name}'; keep one verdict.")
