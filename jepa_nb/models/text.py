"""Text encoder: transformers' BERT from a configuration, randomly initialised (Paper A, protocol A4).

``norm="post"`` is BERT itself, with its layer norm behind each residual sum. ``norm="pre"`` is the same network with the
norms in front, transformers' RobertaPreLayerNorm; it is given BERT's positions 0, 1, 2, ... whatever the tokens are.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import BertConfig, BertModel, RobertaPreLayerNormConfig, RobertaPreLayerNormModel

from jepa_nb.errors import ConfigError, require_known

NORMS = ("post", "pre")
ATTENTION = ("sdpa", "eager")


class TextStack(nn.Module):
    """A bidirectional transformer over token ids or over vectors.

    Args:
        vocab_size: number of token ids; None makes a stack that reads vectors and has no word table.
        width, depth, heads: model width D, layers, attention heads.
        max_length: longest sequence, in tokens.
        ffn: hidden width of the feed-forward blocks; None means 4 D.
        dropout: rate, on embeddings, attention weights and residual branches.
        norm: ``"post"`` or ``"pre"``.
        attention: ``"sdpa"`` or ``"eager"``, transformers' own implementations.
        pad_id: id whose embedding starts at zero and stays there.

    Raises:
        UnknownName: unknown ``norm`` or ``attention``.
        ConfigError: ``width`` is no multiple of ``heads``.
    """

    def __init__(self, *, vocab_size: int | None, width: int, depth: int, heads: int, max_length: int, ffn: int | None = None,
                 dropout: float = 0.0, norm: str = "post", attention: str = "sdpa", pad_id: int = 0):
        super().__init__()
        require_known("norm", norm, NORMS)
        require_known("attention", attention, ATTENTION)
        if width % heads:
            raise ConfigError(f"width {width} is no multiple of heads {heads}; choose heads that divide it.")
        # RobertaPreLayerNorm keeps the position rows up to pad_id for itself.
        offset = pad_id + 1 if norm == "pre" else 0
        config_class, model_class = _CLASSES[norm]
        config = config_class(
            vocab_size=vocab_size or 1, hidden_size=width, num_hidden_layers=depth, num_attention_heads=heads,
            intermediate_size=ffn or 4 * width, max_position_embeddings=max_length + offset, hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout, pad_token_id=pad_id, bos_token_id=None, eos_token_id=None,
            type_vocab_size=2, attn_implementation=attention)
        self.model = model_class(config, add_pooling_layer=False)
        if vocab_size is None:
            self.model.embeddings.word_embeddings = None
        self.max_length, self.width = max_length, width
        self.register_buffer("positions", torch.arange(offset, offset + max_length)[None], persistent=False)

    def forward(self, attention: torch.Tensor | None, **inputs: torch.Tensor) -> torch.Tensor:
        """Last hidden states (B, T, D), after the last layer norm.

        Args:
            attention: (B, T) bool, True on real tokens; None says that nothing is padded and saves the mask.
            inputs: ``input_ids`` (B, T) or ``inputs_embeds`` (B, T, D).

        Raises:
            ConfigError: the sequence is longer than ``max_length``.
        """
        (value,) = inputs.values()
        tokens = value.shape[1]
        if tokens > self.max_length:
            raise ConfigError(f"a sequence of {tokens} tokens is longer than the model's max_length {self.max_length}; "
                              "truncate it or build the model for longer input.")
        return self.model(attention_mask=attention, position_ids=self.positions[:, :tokens], **inputs).last_hidden_state


_CLASSES = {"post": (BertConfig, BertModel), "pre": (RobertaPreLayerNormConfig, RobertaPreLayerNormModel)}


class TextEncoder(TextStack):
    """Token ids to states; for the arguments see :class:`TextStack`."""

    def forward(self, ids: torch.Tensor, attention: torch.Tensor | None = None) -> torch.Tensor:
        """States (B, T, D) of ids (B, T) int64 under attention (B, T) bool, None where nothing is padded."""
        return super().forward(attention, input_ids=ids)
