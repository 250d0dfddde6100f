"""The papers' figures, claims and numbers, read from one TOML file each and checked on reading. No number of a paper
stands in code.

A claim says what is measured (``metric``, ``measure``), how it is judged (``kind``, ``direction``, ``threshold``,
``tolerance``), which figure tests it, and what was reported, with the source of that number. A ``grid`` table in the file
is shorthand for a published table: one ``value`` claim a cell.
"""

from __future__ import annotations

import functools
import math
import tomllib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from jepa_nb import paths
from jepa_nb.errors import ConfigError, UnknownName, require_known

KINDS = ("ordering", "threshold", "event_order", "ratio", "value", "equality")
DIRECTED = ("ordering", "threshold", "event_order", "ratio")
ORIGINS = ("paper", "control")
SOURCES = ("summary", "note", "notes", "training code", "downstream code", "code", "computed", "inferred", "model cards",
           "third party")
SECOND_HAND = ("note", "notes", "inferred")


@dataclass(frozen=True)
class Reported:
    """What a paper reports: a value or a range (``low``, ``high``), its spread over ``n`` runs, and where we know it from.

    ``second_hand`` is true where every source is a note of a third party or a reading that nothing states; arithmetic
    (``computed``) on such numbers stays second-hand.
    """

    source: tuple[str, ...]
    value: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    n: int | None = None
    note: str = ""

    @property
    def second_hand(self) -> bool:
        origins = [tag for tag in self.source if tag != "computed"]
        return bool(origins) and all(tag in SECOND_HAND for tag in origins)

    @property
    def centre(self) -> float | None:
        """The value, or the middle of the range, or ``None`` where no number was reported."""
        if self.value is not None or self.low is None:
            return self.value
        return (self.low + self.high) / 2


@dataclass(frozen=True)
class Claim:
    """One testable statement; see the module's first lines.

    Attributes:
        origin: ``"paper"``, or ``"control"`` for a comparison that the companion adds.
        scale_dependent: the number says nothing at another scale than the paper's; ``reason`` says why.
        tolerance: half-width of the region in which a ``value`` or ``equality`` counts as equal.
    """

    id: str
    paper: str
    statement: str
    item: str
    figure: str
    kind: str
    metric: str
    measure: str
    reported: Reported
    unit: str = ""
    direction: str = ""
    threshold: float | None = None
    tolerance: float | None = None
    scale_dependent: bool = False
    reason: str = ""
    origin: str = "paper"
    note: str = ""

    def region(self) -> tuple[float, float]:
        """Interval in which the claim is true."""
        if self.kind in DIRECTED:
            return (self.threshold, math.inf) if self.direction == "above" else (-math.inf, self.threshold)
        centre = 0.0 if self.reported.centre is None else self.reported.centre
        if self.reported.low is not None:
            return self.reported.low - (self.tolerance or 0.0), self.reported.high + (self.tolerance or 0.0)
        half = max(2 * (self.reported.sd or 0.0), self.tolerance or 0.0)
        return centre - half, centre + half


@dataclass(frozen=True)
class PaperFigure:
    """A figure or table of the companion: its title, the paper's item (or none), and where its layout is known from."""

    name: str
    title: str
    item: str
    known_from: str


@dataclass(frozen=True)
class Paper:
    """Everything in one file."""

    name: str
    title: str
    reference: str
    figures: dict[str, PaperFigure]
    claims: dict[str, Claim]


def names() -> list[str]:
    """Names of the papers, in the companion's order."""
    order = {"paradox": 0, "platonic": 1, "llm_jepa": 2}
    return sorted((file.stem for file in paths.papers().glob("*.toml")), key=lambda name: (order.get(name, len(order)), name))


def paper(name: str) -> Paper:
    """One paper by name.

    Raises:
        UnknownName: there is no such paper.
    """
    return _load(paths.papers() / f"{require_known('paper', name, names())}.toml")


def claims(name: str) -> dict[str, Claim]:
    """All claims of a paper by id, in the file's order."""
    return paper(name).claims


def claim(claim_id: str) -> Claim:
    """A claim of any paper.

    Raises:
        UnknownName: no paper has it; the nearest id is named.
    """
    every = {key: value for name in names() for key, value in claims(name).items()}
    if claim_id not in every:
        raise UnknownName("claim", claim_id, every)
    return every[claim_id]


@functools.cache
def _load(file: Path) -> Paper:
    return parse(file.read_text(encoding="utf-8"), file.stem)


def parse(text: str, name: str) -> Paper:
    """A paper from its TOML text.

    Raises:
        UnknownName: unknown field, kind, direction, source or figure.
        ConfigError: broken TOML, a missing field, an id given twice, or a claim that could not be judged.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"claims of '{name}' are no valid TOML ({error}); mend the file.") from error
    for key in tree:
        require_known("table of a claims file", key, ("paper", "figures", "claim", "grid"))
    for key in ("paper", "figures"):
        if key not in tree:
            raise ConfigError(f"the claims file of '{name}' lacks the table '{key}'; add it.")
    figures = {key: PaperFigure(name=key, **_checked(PaperFigure, value, f"figure {key}", given=("name",)))
               for key, value in tree["figures"].items()}
    found: dict[str, Claim] = {}
    for raw in tree.get("claim", []) + [cell for grid in tree.get("grid", []) for cell in _cells(grid)]:
        item = _claim(raw, name, figures)
        if item.id in found:
            raise ConfigError(f"claim '{item.id}' stands twice in the claims of '{name}'; give one of them another id.")
        found[item.id] = item
    return Paper(name, tree["paper"]["title"], tree["paper"]["reference"], figures, found)


def _claim(raw: dict[str, Any], paper_name: str, figures: dict[str, PaperFigure]) -> Claim:
    where = f"claim {raw.get('id', '?')}"
    values = _checked(Claim, raw, where, given=("paper",))
    reported = _checked(Reported, values["reported"], f"reported of {where}")
    if not reported["source"]:
        raise ConfigError(f"{where} names no source of what is reported; give at least one of {', '.join(SOURCES)}.")
    for tag in reported["source"]:
        require_known(f"source of {where}", tag, SOURCES)
    values["reported"] = Reported(**reported | {"source": tuple(reported["source"])})
    require_known(f"kind of {where}", values["kind"], KINDS)
    require_known(f"figure of {where}", values["figure"], figures)
    require_known(f"origin of {where}", values.get("origin", "paper"), ORIGINS)
    claim = Claim(paper=paper_name, **values)
    _require_judgeable(claim)
    return claim


def _require_judgeable(claim: Claim) -> None:
    if claim.kind in DIRECTED:
        require_known(f"direction of claim {claim.id}", claim.direction, ("above", "below"))
        if claim.threshold is None or (claim.kind == "ratio" and claim.threshold <= 0):
            raise ConfigError(f"claim '{claim.id}' of kind {claim.kind} needs a threshold (positive for a ratio).")
    elif claim.tolerance is None and claim.reported.sd is None and claim.reported.low is None:
        raise ConfigError(f"claim '{claim.id}' of kind {claim.kind} needs a tolerance, a reported sd or a reported range.")
    elif claim.kind == "value" and claim.reported.centre is None:
        raise ConfigError(f"claim '{claim.id}' of kind value needs a reported value or range.")
    if (claim.reported.low is None) != (claim.reported.high is None):
        raise ConfigError(f"claim '{claim.id}' reports half a range; give both low and high.")
    if claim.scale_dependent and not claim.reason:
        raise ConfigError(f"claim '{claim.id}' is scale-dependent; say why in its reason.")


def _checked(kind: type, raw: dict[str, Any], where: str, given: tuple[str, ...] = ()) -> dict[str, Any]:
    """A copy of ``raw`` whose keys are fields of the dataclass ``kind`` and hold all that have no default."""
    valid = {field.name: field for field in fields(kind) if field.name not in given}
    for key in raw:
        require_known(f"field of {where}", key, valid)
    missing = [key for key, field in valid.items() if key not in raw and field.default is MISSING]
    if missing:
        raise ConfigError(f"{where} lacks {', '.join(missing)}; add it to the claims file.")
    return dict(raw)


def _cells(grid: dict[str, Any]) -> list[dict[str, Any]]:
    """One ``value`` claim for each cell ``[value, sd]`` of a published table."""
    own = ("id", "columns", "rows", "reported", "statement", "measure")
    shared = {key: value for key, value in grid.items() if key not in own}
    cells = []
    for row, (label, *values) in grid["rows"].items():
        if len(values) != len(grid["columns"]):
            raise ConfigError(f"row '{row}' of grid {grid['id']} has {len(values)} cells for {len(grid['columns'])} columns.")
        for (column, title, unit), (value, sd) in zip(grid["columns"], values, strict=True):
            words = {"row": label, "column": title}
            cells.append(shared | {
                "id": f"{grid['id']}.{row}.{column}", "kind": "value", "unit": unit,
                "statement": grid["statement"].format(**words), "measure": grid["measure"].format(**words),
                "metric": f"{grid['metric']}.{row}.{column}", "reported": grid["reported"] | {"value": value, "sd": sd}})
    return cells
