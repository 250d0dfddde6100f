"""A small chat template for tokenizers that come without one, and the markers of which it is made."""

from __future__ import annotations

PAD, END = "<pad>", "<|end|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")

PLAIN = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}")
"""Jinja: each message is its marker, a line break, the content, and the tokenizer's own end-of-text token.

The line break keeps the content apart from a marker that the tokenizer cuts into pieces.
"""
