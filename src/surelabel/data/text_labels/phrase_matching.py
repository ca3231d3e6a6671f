"""Search phrases in texts as whole words, with a trie over words."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Phrase = tuple[str, ...]
_Match = tuple[int, int, tuple[int, ...]]


@dataclass
class PhraseNode:
    """Node of a trie over words; the path from the root to the node is the start of phrases.

    Attributes:
        children: Next node by the next word.
        columns: Columns of the labels that the phrase ending here mentions, or empty.
        exceptions: Columns of the labels that no word of the phrase ending here mentions, or empty.
    """

    children: "dict[str, PhraseNode]" = field(default_factory=dict)
    columns: tuple[int, ...] = ()
    exceptions: tuple[int, ...] = ()


class _WordCharacters(dict[int, str | None]):
    """Table of ``str.translate`` that replaces all characters except those of words by spaces.

    Letters, marks and digits remain. Invisible format characters are removed.
    """

    def __missing__(self, code: int) -> str | None:
        category = unicodedata.category(chr(code))
        is_invisible = category == "Cf" or 0xFE00 <= code <= 0xFE0F  # variation selectors
        character = chr(code) if category[0] in "LMN" else " "
        self[code] = None if is_invisible else character
        return self[code]


_WORD_CHARACTERS = _WordCharacters()


def split_words(text: str) -> list[str]:
    """Return the words of a text without case, punctuation and compatibility characters.

    Words are separated by all characters except letters, marks and digits, for example by hyphens
    and apostrophes. Languages without spaces between words are not divided into words.

    Example:
        >>> split_words("A hot-dog's bun — ＣＡＦÉ!")
        ['a', 'hot', 'dog', 's', 'bun', 'café']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = unicodedata.normalize("NFKC", text.casefold())
    return text.casefold().translate(_WORD_CHARACTERS).split()


def build_phrase_trie(
    columns_of: Mapping[Phrase, Iterable[int]], exceptions_of: Mapping[Phrase, Iterable[int]]
) -> PhraseNode:
    """Return the root of a trie of phrases.

    Args:
        columns_of: Columns of the labels that a phrase mentions, by the words of the phrase.
        exceptions_of: Columns of the labels that no word of a phrase mentions, by the words of the
            phrase.
    """
    root = PhraseNode()
    for phrase, columns in columns_of.items():
        _add_phrase_node(root, phrase).columns = tuple(columns)
    for phrase, columns in exceptions_of.items():
        _add_phrase_node(root, phrase).exceptions = tuple(columns)
    return root


def find_phrase_columns(root: PhraseNode, words: Sequence[str]) -> set[int]:
    """Return the columns of the labels that a text mentions.

    Longer phrases are matched first, and among phrases of equal length the leftmost phrase. A word
    belongs to one match only: the words of a match are not matched again. A match inside an
    exception of a label does not mention this label.

    Args:
        root: Root of the trie.
        words: Words of the text.

    Example:
        >>> trie = build_phrase_trie({("dog",): [0], ("bun",): [1]}, {("hot", "dog"): [0]})
        >>> find_phrase_columns(trie, ["hot", "dog", "bun"])
        {1}
    """
    matches, exceptions = _all_phrase_matches(root, words)
    columns: set[int] = set()
    matched: set[int] = set()
    for minus_length, start, phrase_columns in sorted(matches):
        end = start - minus_length
        if matched.isdisjoint(range(start, end)):
            matched.update(range(start, end))
            excluded = [c for first, last, c in exceptions if first <= start and end <= last + 1]
            columns.update(set(phrase_columns).difference(*excluded))
    return columns


def _add_phrase_node(root: PhraseNode, phrase: Phrase) -> PhraseNode:
    node = root
    for word in phrase:
        node = node.children.setdefault(word, PhraseNode())
    return node


def _all_phrase_matches(
    root: PhraseNode, words: Sequence[str]
) -> tuple[list[_Match], list[_Match]]:
    """Return all phrases in a text, which can overlap.

    Returns:
        Phrases that mention labels, each as the negative number of words, the first word and the
        columns; and exceptions, each as the first word, the last word and the columns.
    """
    matches, exceptions = [], []
    for start in [i for i, word in enumerate(words) if word in root.children]:
        node = root
        for end in range(start, len(words)):
            child = node.children.get(words[end])
            if child is None:
                break
            node = child
            if node.columns:
                matches.append((start - end - 1, start, node.columns))
            if node.exceptions:
                exceptions.append((start, end, node.exceptions))
    return matches, exceptions
