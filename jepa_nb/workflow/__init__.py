"""What ``make figures`` adds to Snakemake: the choice of notebooks, chunks of runs, notebook jobs, publishing and progress.

The Snakefile reads :mod:`.plan` and calls the other modules as jobs; nothing here decides what is stale.
"""
