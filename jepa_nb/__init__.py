"""Reference companion to three papers on joint-embedding predictive architectures (JEPA).

Importing the package is cheap: no submodule, and so no torch, is loaded until it is asked for.
"""

__version__ = "0.1.0"
