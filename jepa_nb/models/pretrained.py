"""Pretrained causal language models of a recipe, from local folders only; weights are safetensors, no code of the hub runs.

Quantised GGUF files are turned into safetensors once and kept in the cache, under the fingerprint of what they came from.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, PreTrainedModel, PreTrainedTokenizerBase

from jepa_nb import paths
from jepa_nb.data import recipes, weights
from jepa_nb.data.archives import disk_errors
from jepa_nb.errors import DataError

OFFLINE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def load(recipe: str, source: str, *, dtype: torch.dtype = torch.float32) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal language model and its tokenizer, on the CPU in evaluation mode.

    Args:
        recipe: recipe of a model.
        source: one of the sources that it offers.
        dtype: of the weights.

    Raises:
        UnknownName: unknown recipe or source.
        DataError: the files are not there, or are no language model.
    """
    folder = weights.folder(recipe, source)
    quantised = sorted(folder.glob("*.gguf"))
    if quantised:
        folder = _converted(recipe, source, quantised[0])
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa", use_safetensors=True, **OFFLINE)
        return model.eval(), AutoTokenizer.from_pretrained(folder, **OFFLINE)
    except (OSError, ValueError) as fault:
        raise DataError(f"the files of recipe '{recipe}' in {folder} are no causal language model in safetensors ({fault}); "
                        "fetch them again.") from fault


def _converted(recipe: str, source: str, file: Path) -> Path:
    """Folder with the safetensors of a GGUF file; it appears whole or not at all."""
    place = paths.cache() / "models" / f"{recipe}-{recipes.fingerprint(recipe, source)}"
    with disk_errors("the converted weights"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(place.with_suffix(".lock")):
            if not place.is_dir():
                part = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}-"))
                try:
                    _convert(file, part)
                    os.replace(part, place)
                finally:
                    shutil.rmtree(part, ignore_errors=True)
    return place


def _convert(file: Path, into: Path) -> None:
    named: dict[str, Any] = {"gguf_file": file.name, **OFFLINE}
    AutoTokenizer.from_pretrained(file.parent, **named).save_pretrained(into)
    model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True), **named)
    model.save_pretrained(into)
