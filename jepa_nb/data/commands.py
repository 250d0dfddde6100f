"""``python -m jepa_nb data list|fetch|verify``: one line a recipe on standard output, an exit status of 0 or 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from jepa_nb.data import fetch, recipes
from jepa_nb.errors import JepaError


def list_recipes() -> int:
    """Print every recipe: name, sources, title, licence."""
    for name in recipes.names():
        recipe = recipes.load(name)
        print(f"{name:<20} {', '.join(recipe.sources):<26} {recipe.title}; licence: {recipe.licence}")
    return 0


def fetch_recipes(names: Iterable[str] = (), source: str = "embedded") -> int:
    """Fetch the named recipes, or all that offer ``source``; returns 1 when one failed."""
    return _each(list(names) or _offering(source), lambda name: _fetched(name, source))


def verify_recipes(names: Iterable[str] = ()) -> int:
    """Check the cached files of the named recipes, or of all with embedded files; returns 1 when one is missing or damaged."""
    return _each(list(names) or _offering("embedded"), _verified)


def _offering(source: str) -> list[str]:
    return [name for name in recipes.names() if source in recipes.load(name).sources]


def _each(names: list[str], work: Callable[[str], tuple[bool, str]]) -> int:
    status = 0
    for name in names:
        try:
            ok, text = work(name)
        except JepaError as fault:
            ok, text = False, str(fault)
        print(f"[{'ok' if ok else 'fail'}] {name}: {text}", flush=True)
        status |= not ok
    return int(status)


def _fetched(name: str, source: str) -> tuple[bool, str]:
    found = fetch.fetch(name, source)
    if not found:
        return True, "streamed when it is read, nothing to fetch" if source == "hub" else "generated, nothing to fetch"
    size = sum(path.stat().st_size for path in found.values())
    return True, f"{len(found)} file{'s' if len(found) > 1 else ''}, {size / 1e6:.1f} MB"


def _verified(name: str) -> tuple[bool, str]:
    checked = fetch.verify(name)
    bad = [(member, why) for member, ok, why in checked if not ok]
    if bad:
        member, why = bad[0]
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        return False, f"{member} ({why}){more}; run `python -m jepa_nb data fetch {name}`"
    return True, f"{len(checked)} file{'s' if len(checked) != 1 else ''} as pinned" if checked else "no embedded files to check"
