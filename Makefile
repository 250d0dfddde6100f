# figures   regenerate the headline figures of the laptop tier: make figures [ONLY=paradox/fig2*] [ALL=1] [TIER=smoke] [CORES=4]
# test      unit, oracle, property and reliability tests, then every notebook at the smoke tier
# lab       JupyterLab on notebooks/00_start_here.ipynb
# data      fetch and verify every data set that the notebooks need
# bench     step times and their parts
# clean     remove build/ and the caches of the tools (.venv and the data cache stay)
# `make figures FLAGS=--dry-run` says what would run and why; FLAGS takes any option of snakemake.

TIER ?= laptop
ONLY ?=
ALL ?=
CORES ?= $(shell getconf _NPROCESSORS_ONLN)
FLAGS ?=

PY := .venv/bin/python
READY := .venv/ready

# One kernel spec (the environment's own), one thread a process: processes fill the cores.
export JUPYTER_PREFER_ENV_PATH := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.PHONY: figures test lab data bench clean

figures: $(READY)
	@$(PY) -m jepa_nb.workflow figures --tier "$(TIER)" --only "$(ONLY)" --cores "$(CORES)" $(if $(ALL),--all) -- $(FLAGS)

test: $(READY)
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	JEPA_NB_TIER=smoke JEPA_NB_BUILD="$$scratch/build" JEPA_NB_HOME="$$scratch/home" \
	$(PY) -m pytest tests notebooks -n 2 --dist loadfile \
		--nbval-lax --nbval-current-env --nbval-cell-timeout 120 --nbval-kernel-startup-timeout 120

lab: $(READY)
	@$(PY) -m jupyterlab --ServerApp.root_dir="$(CURDIR)" notebooks/00_start_here.ipynb

data: $(READY)
	@$(PY) -m jepa_nb data fetch
	@$(PY) -m jepa_nb data verify

bench: $(READY)
	@for script in tests/bench/bench_*.py; do $(PY) "$$script" || exit 1; done

clean:
	rm -rf build .snakemake .pytest_cache .hypothesis

$(READY): requirements.lock
	@PYTHON="$(PYTHON)" tools/setup.sh
