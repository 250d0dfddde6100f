"""A small grammar of English-like documents for the smoke tier: tests need text without a download, and its numbers mean nothing.

A document has a setting (two nouns and a place) that its sentences share, so that context says something about a hidden word.
"""

from __future__ import annotations

import numpy as np

from jepa_nb import seeds

NOUNS = ("actor", "bird", "captain", "child", "doctor", "farmer", "film", "garden", "horse", "house", "letter", "painter",
         "river", "ship", "singer", "soldier", "stone", "story", "teacher", "tree", "village", "wolf")
ADJECTIVES = ("old", "young", "quiet", "loud", "small", "great", "strange", "kind", "broken", "golden", "tired", "clever")
VERBS = ("found", "followed", "painted", "remembered", "carried", "feared", "watched", "saved", "lost", "described")
PLACES = ("near the harbour", "behind the mill", "under the bridge", "in the market", "beside the church", "across the valley")
TIMES = ("in the morning", "after the war", "before the storm", "every summer", "at midnight", "last winter")
LINKS = ("while", "because", "although", "and then", "but", "until")


def documents(*, seed: int, count: int, sentences: tuple[int, int] = (4, 9)) -> list[str]:
    """``count`` documents as plain text.

    Args:
        seed: seed of the named stream.
        count: number of documents.
        sentences: least and greatest number of sentences of a document; each has 8 to 30 words and ends with a full stop.
    """
    generator = seeds.numpy_generator(seed, "worlds", "sentences")
    return [_document(generator, int(generator.integers(sentences[0], sentences[1] + 1))) for _ in range(count)]


def _document(generator: np.random.Generator, length: int) -> str:
    subject, other = generator.choice(NOUNS, size=2, replace=False)
    place = generator.choice(PLACES)
    return " ".join(_sentence(generator, subject, other, place) for _ in range(length))


def _sentence(generator: np.random.Generator, subject: str, other: str, place: str) -> str:
    clauses = [_clause(generator, subject, other)]
    for _ in range(int(generator.integers(0, 3))):
        clauses.append(f"{generator.choice(LINKS)} {_clause(generator, other, subject)}")
    words = f"{' '.join(clauses)} {place if generator.random() < 0.6 else generator.choice(TIMES)}"
    return words[0].upper() + words[1:] + "."


def _clause(generator: np.random.Generator, subject: str, other: str) -> str:
    target = other if generator.random() < 0.7 else generator.choice(NOUNS)
    return f"the {generator.choice(ADJECTIVES)} {subject} {generator.choice(VERBS)} the {target}"
