"""data -> runs -> notebooks -> publish (figures/, ledger, gallery).

`make figures` calls this; `snakemake --cores 2 --config tier=smoke only=paradox/* --dry-run` works too. Markers stand for
what a job made: a run lies in the store under its key, an executed notebook stays readable when it failed. So chunks and
data are `ancient` to a notebook: it is stale when its file, its runs' keys or the code it calls changed, never by a date alone.
"""

import os
import shlex
import sys
from pathlib import Path

from snakemake.logging import logger

from jepa_nb import config as configuration, figures, paths, provenance
from jepa_nb.data import recipes
from jepa_nb.experiments import registry
from jepa_nb.workflow import plan
from jepa_nb.workflow.progress import Progress, show

for variable in ("JEPA_NB_BUILD", "JEPA_NB_HOME", "JEPA_NB_DATA"):  # jobs run in the build folder
    if os.environ.get(variable):
        os.environ[variable] = os.path.abspath(os.environ[variable])

TIER = configuration.resolve_tier(str(config.get("tier", configuration.DEFAULT_TIER)))
CORES = int(config.get("cores", 2))
CHOSEN = registry.select(str(config.get("only") or ""), everything=str(config.get("all", False)) == "True")
SELECTED = [spec.name for spec in CHOSEN]
CHUNKS = plan.chunks(SELECTED, TIER, CORES)
BUILT_ON = {name for chunk in CHUNKS for name in chunk.after}  # others wait for them, so they go first
PYTHON = shlex.quote(sys.executable)
NOTEBOOK_LIMIT = 900  # seconds over ten times the plan: a hung kernel must end, a slow machine must not
OUTPUT_CODE = provenance.code_fingerprint(["jepa_nb.figures", "jepa_nb.ledger"])
planned, titles = {}, {}


def expect(rule_name, seconds, title):
    planned[rule_name], titles[rule_name] = seconds, title
    return rule_name


def seconds(spec):
    """Planned seconds of a notebook itself; a notebook states those of smoke and laptop, larger tiers plot more of the same."""
    return spec.seconds.get(TIER, spec.seconds["laptop"])


def relative(path):
    """Paths relative to the build folder: a moved or copied checkout stays up to date."""
    return os.path.relpath(path, paths.build())


def claims_of(spec):
    """The paper's numbers, which stand in the figure beside the measured ones."""
    file = paths.papers() / f"{spec.name.partition('/')[0]}.toml"
    return [relative(file)] if file.exists() else []


def chunk_marker(name):
    return f"{TIER}/chunks/{name}.done"


def notebook_marker(name):
    return f"{TIER}/notebooks/{name}.done"


def data_marker(recipe):
    """Named by content, so that checkouts which share a cache agree on it whatever the dates of their files."""
    return str(paths.cache() / "fetched" / f"{recipe}-{recipes.fingerprint(recipe, 'embedded')}.done")


def downloads(chunk):
    return sorted(recipe for recipe, source in chunk.recipes if source == "embedded")


paths.build().mkdir(parents=True, exist_ok=True)
workdir: str(paths.build())


shell.prefix("export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1; ")


rule all:
    input:
        "gallery/index.html",


for recipe in sorted({recipe for chunk in CHUNKS for recipe in downloads(chunk)}):

    rule:
        name: expect(f"data_{recipe}", 5, f"data {recipe}")
        output: data_marker(recipe)
        log: f"{TIER}/logs/data_{recipe}.log"
        params: recipe=recipe
        priority: 100
        shell: "{PYTHON} -m jepa_nb data fetch {params.recipe} > {log} 2>&1 || {{ tail -n 1 {log} >&2; exit 1; }}; touch {output}"


for chunk in CHUNKS:

    rule:
        name: expect(f"chunk_{chunk.name}", chunk.seconds + 3, f"{len(chunk.keys)} runs of {len(chunk.notebooks)} notebooks")
        input:
            [ancient(data_marker(recipe)) for recipe in downloads(chunk)],
            [ancient(chunk_marker(name)) for name in chunk.after],
        output: chunk_marker(chunk.name)
        log: f"{TIER}/logs/chunk_{chunk.name}.log"
        params: runs=chunk.keys, tier=TIER
        priority: max(plan.priority(name) for name in chunk.notebooks) + (chunk.name in BUILT_ON)
        benchmark: f"{TIER}/benchmarks/chunk_{chunk.name}.tsv"
        shell:
            "{PYTHON} -m jepa_nb run {params.runs} --tier {params.tier} > {log} 2>&1 || {{ tail -n 1 {log} >&2; exit 1; }}"
            "; touch {output}"


for spec in CHOSEN:

    rule:
        name: expect(f"notebook_{spec.name.replace('/', '_')}", seconds(spec), spec.name)
        input:
            relative(spec.path),
            relative(figures.STYLE_FILE),
            claims_of(spec),
            [ancient(chunk_marker(chunk.name)) for chunk in CHUNKS if spec.name in chunk.notebooks],
        output: [notebook_marker(spec.name), *([f"{TIER}/figures/{spec.figure}.json"] if spec.figure else [])]
        params:
            notebook=spec.name,
            tier=TIER,
            limit=NOTEBOOK_LIMIT + 10 * seconds(spec),
            runs=sorted(run.key for run in registry.plan(spec.name, TIER)),
            code=registry.code_fingerprint(spec.name),
            output_code=OUTPUT_CODE,
        priority: plan.priority(spec.name)
        retries: 1
        benchmark: f"{TIER}/benchmarks/{spec.name}.tsv"
        shell:
            "{PYTHON} -m jepa_nb.workflow notebook {params.notebook} --tier {params.tier} --limit {params.limit}"
            " && touch {output[0]}"


rule:
    name: expect("publish", 5, "figures, ledger, gallery")
    input:
        [notebook_marker(name) for name in SELECTED],
        sorted(relative(file) for file in paths.papers().glob("*.toml")),
    output: "gallery/index.html"
    params:
        names=SELECTED,
        tier=TIER,
        code=provenance.code_fingerprint(["jepa_nb.ledger", "jepa_nb.gallery", "jepa_nb.workflow.publish"]),
    shell: "{PYTHON} -m jepa_nb.workflow publish {params.names} --tier {params.tier} > /dev/null"


if str(config.get("progress", False)) == "True":
    show(logger, Progress(planned, titles, CORES, sys.stderr))
