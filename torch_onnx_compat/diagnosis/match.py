"""Scores how much of a known message stands in a text, word by word, so that paths, numbers and phrasing may differ."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch_onnx_compat.places import plain

THRESHOLD = 0.72
"""Least share of a message's weight that must stand in the text; unrelated messages reach about 0.5."""

SHORT_THRESHOLD = 0.9
"""The same for a short message."""

SHORT = 5
"""Distinctive words below which a message is short."""

LEAST_WEIGHT = 4.5
"""Least weight of the matched words, in bits: two or three words that few messages hold."""

_SPREAD = 2.0
"""Longest stretch of a text in which a message may stand, as a multiple of the message's length in words."""

_PATHS = re.compile(r"(?:[A-Za-z]:)?(?:[\w.\-+~]*[/\\])+[\w.\-+~]+(?:\.py)?(?:[(:]\d+\)?)?")
_LINKS = re.compile(r"\b\w+://\S+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_EQUAL = {
    "unsupported": ("not", "support"),
    "unsupport": ("not", "support"),
    "cannot": ("can", "not"),
    "couldn": ("can", "not"),
    "could": ("can",),
    "doesn": ("not",),
    "isn": ("not",),
    "won": ("not",),
    "unable": ("can", "not"),
    "failed": ("fail",),
    "invalid": ("not", "valid"),
    "unrecognized": ("unknown",),
    "incompatible": ("mismatch",),
    "dims": ("dimension",),
    "dim": ("dimension",),
    "op": ("operator",),
    "aten": (),
    "t": (),
    "s": (),
    "int": ("integer",),
    "ints": ("integer",),
    "bool": ("boolean",),
    "guards": ("guard",),
}
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in is are was be been by for from with and or but not no this that it its as on at has have "
        "here they which can will would may might should must please use using if you your we error fail failure "
        "message export onnx torch python model node operator input output value type name shape size tensor",
    )
)
_COMMON_WEIGHT = 0.3
_ENDINGS = ("izations", "ization", "ations", "ation", "ings", "ing", "edly", "ly", "ed", "ies", "es", "s", "e")


def words(text: str) -> list[str]:
    """The words of a message as stems, without colours, links, paths and numbers."""
    text = _LINKS.sub(" ", plain(text)).replace("\u2b06", " ")
    text = _PATHS.sub(lambda found: found[0] if _is_words(found[0]) else " ", text)
    stems: list[str] = []
    for word in _WORD.findall(text.replace("n't", " not")):
        lower = word.lower()
        stems.extend(_EQUAL[lower] if lower in _EQUAL else (_stem(lower),))
    return stems


def _is_words(path: str) -> bool:
    """Whether an apparent path is two words, as in ``input/output``."""
    return path.count("/") == 1 and "." not in path and not path.startswith("/")


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@dataclass(frozen=True)
class Message:
    """The constant words of a known message, each with its weight."""

    name: str
    length: int
    weights: Mapping[str, float]

    @property
    def threshold(self) -> float:
        """Least weight that must stand in a text."""
        distinctive = sum(weight > _COMMON_WEIGHT for weight in self.weights.values())
        return self.total * (THRESHOLD if distinctive >= SHORT else SHORT_THRESHOLD)

    @property
    def total(self) -> float:
        """The weight of all words."""
        return sum(self.weights.values())


def messages(texts: Mapping[str, Sequence[str]]) -> list[Message]:
    """Weighs the words of known messages: a word weighs more if fewer messages hold it.

    Args:
        texts: The phrasings of each message, by its name.
    """
    split = [(name, words(text.replace("{}", " "))) for name, phrasings in texts.items() for text in phrasings]
    holders: dict[str, set[str]] = defaultdict(set)
    for name, stems in split:
        for stem in stems:
            holders[stem].add(name)
    common = {_stem(word) for word in _COMMON} | _COMMON

    def weight(stem: str) -> float:
        return _COMMON_WEIGHT if stem in common else math.log2(1 + len(texts) / len(holders[stem])) / 2

    return [Message(name, len(stems), {stem: weight(stem) for stem in stems}) for name, stems in split]


def score(message: Message, positions: Mapping[str, Sequence[int]]) -> float:
    """The share of a message's weight that stands close together in a text; 0 below the threshold.

    Args:
        message: The message.
        positions: Where each stem stands in the text.
    """
    present = [stem for stem in message.weights if stem in positions]
    if not _is_enough(message, sum(message.weights[s] for s in present)):
        return 0.0
    found = sorted((place, stem) for stem in present for place in positions[stem])
    span = message.length * _SPREAD + 4
    best, weight, start = 0.0, 0.0, 0
    window: Counter[str] = Counter()
    for place, stem in found:
        weight += 0.0 if window[stem] else message.weights[stem]
        window[stem] += 1
        while place - found[start][0] > span:
            old = found[start][1]
            window[old] -= 1
            weight -= 0.0 if window[old] else message.weights[old]
            start += 1
        best = max(best, weight)
    return best / message.total if _is_enough(message, best) else 0.0


def _is_enough(message: Message, weight: float) -> bool:
    return weight >= message.threshold and weight >= min(LEAST_WEIGHT, 0.999 * message.total)


def positions(stems: Iterable[str]) -> dict[str, list[int]]:
    """The positions of each stem."""
    table: dict[str, list[int]] = defaultdict(list)
    for place, stem in enumerate(stems):
        table[stem].append(place)
    return table
