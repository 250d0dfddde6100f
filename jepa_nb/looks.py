"""How each method looks in every figure of the three papers: one colour, one marker and one dash, so that a line is known
by its colour, and without colour by its marker and dash. Colours are seaborn's ``colorblind`` palette and greys."""

from __future__ import annotations

from dataclasses import dataclass

from jepa_nb.errors import require_known

BLUE, ORANGE, GREEN, VERMILION, PINK = "#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"
BROWN, LIGHT_PINK, GREY, YELLOW, SKY = "#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"
BLACK, DARK, MIDDLE = "#202020", "#505050", "#767676"
SOLID, DASHED, DOTTED, DASHDOT = "solid", (0, (5, 2)), (0, (1, 1.4)), (0, (5, 1.5, 1, 1.5))
LONG, DASHDOTDOT = (0, (9, 2)), (0, (5, 1.5, 1, 1.5, 1, 1.5))


@dataclass(frozen=True)
class Look:
    """Colour (hex), marker and dash of a method."""

    color: str
    marker: str
    dash: str | tuple[float, tuple[float, ...]]


METHODS = {
    # latent prediction
    "T-JEPA": Look(ORANGE, "o", SOLID), "I-JEPA": Look(BLUE, "s", SOLID), "LLM-JEPA": Look(VERMILION, "D", SOLID),
    "good views": Look(GREEN, "^", SOLID), "bad views": Look(PINK, "v", DASHED),
    "SIGReg": Look(SKY, "P", DASHED), "VICReg": Look(BROWN, "X", DASHED), "Barlow Twins": Look(YELLOW, "h", DASHED),
    "BYOL": Look(LIGHT_PINK, "p", DASHED), "InfoNCE": Look(GREEN, "d", DASHDOT), "mixture": Look(PINK, "*", DASHDOT),
    # reconstruction
    "next token": Look(BLACK, "x", DASHED), "masked LM": Look(DARK, "+", LONG), "softmax": Look(BLUE, "1", DASHDOT),
    # references
    "random init": Look(GREY, "<", DOTTED), "bag of words": Look(MIDDLE, ">", DOTTED), "tf-idf": Look(MIDDLE, "2", DASHDOTDOT),
    "vision encoder": Look(BLUE, "H", DASHED), "chance": Look(GREY, "_", DASHDOTDOT), "exact": Look(BLACK, "|", DOTTED),
}
ALIASES = {"text": "T-JEPA", "image": "I-JEPA", "NTP": "next token", "BERT": "masked LM", "MLM": "masked LM",
           "Barlow": "Barlow Twins"}
REPORTED = "#8b1a2b"  # the paper's numbers, in every figure
EVENT = "#c0392b"  # the paper's red line at the instability

# Methods that share an axis somewhere: they must differ in grey too.
TOGETHER = (("T-JEPA", "I-JEPA"), ("LLM-JEPA", "next token"), ("good views", "bad views"), ("good views", "next token"),
            ("masked LM", "T-JEPA"), ("random init", "masked LM"))


def look(method: str) -> Look:
    """The look of a method.

    Raises:
        UnknownName: the method has none; add it to :data:`METHODS`.
    """
    name = ALIASES.get(method, method)
    return METHODS[require_known("method", name, METHODS)]


def luminance(color: str) -> float:
    """Relative luminance (WCAG) of a hex colour, 0 black to 1 white: what is left of it in grey."""
    channels = [int(color[start:start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
