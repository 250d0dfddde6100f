"""The last step of ``make figures``: reference figures, ledger and gallery from the sidecars of the executed notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from jepa_nb import config, files, gallery, ledger, paths
from jepa_nb.experiments import registry

ENDINGS = ("png", "svg", "pdf", "csv", "json", "md", "tex")  # figures, and the two extra forms of a table


def publish(names: Iterable[str], tier: str) -> Path:
    """Write the ledger and the gallery of a tier, and at laptop tier first copy the figures to ``figures/``.

    Returns the gallery's page. Only figures of the tier's own parameters are copied: a figure with overrides stays in ``build/``.
    """
    built = paths.tier_build(tier) / "figures"
    if tier == config.DEFAULT_TIER:
        for name in names:
            figure = registry.notebooks()[name].figure
            if figure and unmodified(built / f"{figure}.json", tier):
                copy(figure, built, paths.figures())
        ledger.write(ledger.collect(paths.figures()), paths.figures())
    ledger.write(ledger.collect(built), built)
    return gallery.build(tier)


def unmodified(sidecar: Path, tier: str) -> bool:
    """Whether a figure was made at ``tier`` with the tier's own seeds, source and fields, and the notebook's own choices.

    Raises:
        DataError: the sidecar cannot be read.
    """
    made = ledger.read_sidecar(sidecar)
    asked = made["parameters"]
    own_data = not asked.get("seeds") and asked.get("source", "embedded") == "embedded"
    return made["tier"] == tier and not made["overrides"] and not asked.get("choices") and own_data


def copy(figure: str, source: Path, target: Path) -> None:
    """Copy all files of a figure; files whose bytes are the same keep their modification time."""
    for ending in ENDINGS:
        found = source / f"{figure}.{ending}"
        if found.exists() and not same(found, target / found.name):
            with files.atomic(target / found.name) as temporary:
                temporary.write_bytes(found.read_bytes())


def same(one: Path, other: Path) -> bool:
    """Whether two files exist and hold the same bytes."""
    return other.exists() and one.read_bytes() == other.read_bytes()
