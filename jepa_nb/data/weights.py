"""Pretrained weights and tokenizers as local folders, fetched by their recipe; loading them never runs code from the hub."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from jepa_nb.data import fetch


def folder(name: str, source: str) -> Path:
    """Folder with the files of a model recipe.

    Raises:
        UnknownName: unknown recipe or a source that it does not offer.
        DataError: the files are not there and cannot be fetched.
    """
    first = next(iter(fetch.fetch(name, source).values()))
    return first if first.is_dir() else first.parent


def tokenizer(name: str, source: str) -> Tokenizer:
    """The tokenizer of a model recipe. Raises as :func:`folder`."""
    return Tokenizer.from_file(str(folder(name, source) / "tokenizer.json"))
