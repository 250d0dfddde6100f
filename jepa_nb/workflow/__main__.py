"""``python -m jepa_nb.workflow figures``: what ``make figures`` calls; ``notebook`` and ``publish`` are jobs of the Snakefile."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys

import psutil
from filelock import FileLock, Timeout

from jepa_nb import cli, config, paths
from jepa_nb.errors import JepaError
from jepa_nb.experiments import registry
from jepa_nb.workflow import notebook, publish

PATIENCE = 30.0  # seconds that interrupted jobs get to end by themselves
UNFINISHED = ("make figures did not finish: what failed is named above, Snakemake's own log lies in .snakemake/log; "
              "call it again and it goes on from what is done.")


def parser() -> argparse.ArgumentParser:
    """The arguments of the three commands."""
    root = argparse.ArgumentParser(prog="python -m jepa_nb.workflow", description=__doc__)
    commands = root.add_subparsers(dest="command", required=True)
    figures = commands.add_parser("figures", help="regenerate figures, then say where the gallery is")
    figures.add_argument("--tier", default=config.DEFAULT_TIER)
    figures.add_argument("--only", default="", help="name or glob on <folder>/<stem>")
    figures.add_argument("--cores", type=int, default=2)
    figures.add_argument("--all", action="store_true", help="all notebooks instead of the headline set")
    figures.add_argument("flags", nargs="*", help="after --: options of snakemake")
    one = commands.add_parser("notebook", help="execute one notebook")
    one.add_argument("name")
    one.add_argument("--tier", required=True)
    one.add_argument("--limit", type=float, required=True, help="seconds")
    last = commands.add_parser("publish", help="copy figures, write ledger and gallery")
    last.add_argument("names", nargs="+")
    last.add_argument("--tier", required=True)
    return root


def figures(arguments: argparse.Namespace) -> int:
    """Check the names, then hand over to Snakemake; one call at a time may work in a build folder."""
    tier = config.resolve_tier(arguments.tier)
    registry.select(arguments.only, everything=arguments.all)
    paths.build().mkdir(parents=True, exist_ok=True)
    lock = FileLock(paths.build() / "figures.lock")
    try:
        with lock.acquire(timeout=0):
            status = _wait(subprocess.Popen(_command(arguments, tier), cwd=paths.project()))
    except Timeout:
        raise JepaError(f"another `make figures` works in {paths.build()}; wait for it or stop it, then call again.") from None
    page = paths.build().resolve() / "gallery" / "index.html"
    if status == 0 and not arguments.flags:
        print(f"Gallery: {page}")
    elif status not in (0, cli.INTERRUPTED):
        print(UNFINISHED, file=sys.stderr)
    return status


def _wait(process: subprocess.Popen) -> int:
    """Exit status of Snakemake. Ctrl-C reaches it and its jobs too: wait until they have written what they have.

    A job that ends just before Snakemake sees the signal counts as failed and is tried again: such a second try never saw
    the signal, so it is sent once more to all that still work after :data:`PATIENCE`.
    """
    interrupted = False
    while True:
        try:
            status = process.wait(PATIENCE if interrupted else None)
        except KeyboardInterrupt:
            interrupted = True
            continue
        except subprocess.TimeoutExpired:
            for job in psutil.Process(process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    job.send_signal(signal.SIGINT)
            continue
        if interrupted:
            print(cli.RESUMABLE, file=sys.stderr)
        return cli.INTERRUPTED if interrupted else status


def _command(arguments: argparse.Namespace, tier: str) -> list[str]:
    """The lock above is released when its process dies, so Snakemake's own, which is not, is switched off."""
    settings = [f"tier={tier}", f"only={arguments.only}", f"cores={arguments.cores}", f"all={arguments.all}",
                f"progress={not arguments.flags}"]
    return [sys.executable, "-m", "snakemake", "--cores", str(arguments.cores), "--config", *settings,
            "--rerun-triggers", "mtime", "params", "code", "--rerun-incomplete", "--keep-going", "--scheduler", "greedy",
            "--nolock", *arguments.flags]


def run(arguments: argparse.Namespace) -> int:
    """Carry out one command."""
    if arguments.command == "figures":
        return figures(arguments)
    if arguments.command == "notebook":
        notebook.execute(arguments.name, arguments.tier, arguments.limit)
    else:
        publish.publish(arguments.names, arguments.tier)
    return 0


if __name__ == "__main__":
    raise SystemExit(cli.guarded(run, parser().parse_args()))
