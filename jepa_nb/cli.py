"""``python -m jepa_nb data|run|ledger|gallery|doctor``: the parts of the workflow, one at a time.

A fault that the reader can mend is one sentence on standard error and exit status 1. torch is imported only by a command
that trains or looks at the device.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from jepa_nb import __version__, config
from jepa_nb.errors import ConfigError, JepaError

INTERRUPTED = 130
RESUMABLE = "interrupted: finished runs and the last checkpoint are kept; call it again and it goes on from there."


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands; each sets ``action``."""
    root = argparse.ArgumentParser(prog="python -m jepa_nb", description=__doc__.splitlines()[0])
    root.add_argument("--version", action="version", version=__version__)
    commands = root.add_subparsers(dest="command", required=True, metavar="data|run|ledger|gallery|doctor")
    _data(commands.add_parser("data", help="list, fetch or verify data recipes"))
    _run(commands.add_parser("run", help="train runs by key, or show the plan of a tier"))
    ledger = commands.add_parser("ledger", help="print the table of claims and write figures/ledger.{md,csv,tex}")
    ledger.set_defaults(action=show_ledger)
    gallery = commands.add_parser("gallery", help="build the gallery from the figures of a tier")
    gallery.add_argument("--tier", default="default")
    gallery.set_defaults(action=build_gallery)
    doctor = commands.add_parser("doctor", help="check versions, device, cache and data, one line each")
    doctor.set_defaults(action=run_doctor)
    return root


def _data(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=("list", "fetch", "verify"))
    command.add_argument("names", nargs="*", help="recipes; none means all that offer the source")
    command.add_argument("--source", default="embedded", help="with fetch: embedded, local or hub")
    command.set_defaults(action=data)


def _run(command: argparse.ArgumentParser) -> None:
    command.add_argument("keys", nargs="*", metavar="KEY", help="keys as --plan prints them")
    command.add_argument("--tier", default="default", help="smoke, laptop, gpu or paper")
    command.add_argument("--plan", action="store_true", help="print the runs, their seconds and the notebooks that share them")
    command.add_argument("--only", default="", help="with --plan: name or glob on <folder>/<stem>")
    command.set_defaults(action=run)


def data(arguments: argparse.Namespace) -> int:
    """``data list|fetch|verify [NAME...]``."""
    from jepa_nb.data import commands

    if arguments.what == "list":
        return commands.list_recipes()
    if arguments.what == "fetch":
        return commands.fetch_recipes(arguments.names, arguments.source)
    return commands.verify_recipes(arguments.names)


def run(arguments: argparse.Namespace) -> int:
    """``run KEY... --tier T`` trains what is missing; ``run --plan`` shows what a tier holds.

    Raises:
        ConfigError: neither keys nor ``--plan``.
        UnknownName: a key is not one of the tier's.
    """
    from jepa_nb.experiments import registry

    tier = config.resolve_tier(arguments.tier)
    if arguments.plan:
        return show_plan([spec.name for spec in registry.select(arguments.only, everything=True)], tier)
    if not arguments.keys:
        raise ConfigError("nothing to run: give run keys, or --plan to see those of the tier.")
    registry.run(arguments.keys, tier)
    return 0


def show_plan(names: Sequence[str], tier: str) -> int:
    """Print each run once: key, planned seconds, whether it is in the store, label, and the notebooks that read it."""
    from jepa_nb.training import store
    from jepa_nb.workflow import plan

    runs, readers = plan.shared_runs(names, tier)
    for key, planned in runs.items():
        state = "done" if store.is_finished(key) else "-"
        print(f"{key}  {planned.seconds:7.1f} s  {state:<4}  {planned.label}  <- {', '.join(sorted(readers[key]))}")
    missing = sum(planned.seconds for key, planned in runs.items() if not store.is_finished(key))
    print(f"{len(runs)} runs of tier {tier}, {sum(planned.seconds for planned in runs.values()):.0f} s planned on one core, "
          f"{missing:.0f} s of them not trained yet.")
    return 0


def show_ledger(arguments: argparse.Namespace) -> int:
    """``ledger``: rewrite and print the table beside the reference figures."""
    from jepa_nb import ledger, paths

    print(ledger.write(ledger.collect(paths.figures()), paths.figures()))
    return 0


def build_gallery(arguments: argparse.Namespace) -> int:
    """``gallery``: rebuild the page and print where it is."""
    from jepa_nb import gallery

    print(gallery.build(config.resolve_tier(arguments.tier)))
    return 0


def run_doctor(arguments: argparse.Namespace) -> int:
    """``doctor``: exit status 1 when a line fails."""
    from jepa_nb import doctor

    checks = doctor.examine()
    for check in checks:
        print(check)
    return 0 if all(check.ok for check in checks) else 1


def guarded(action: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run a command; a mendable fault becomes one sentence and status 1, Ctrl-C status 130."""
    try:
        return action(arguments)
    except JepaError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(RESUMABLE, file=sys.stderr)
        return INTERRUPTED


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    arguments = parser().parse_args(argv)
    return guarded(arguments.action, arguments)
