import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.data.text_labels.phrase_matching import (
    build_phrase_trie,
    find_phrase_columns,
    split_words,
)

WORDS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple)
COLUMNS = st.sets(st.integers(0, 4), min_size=1, max_size=2)


def columns_by_search(columns_of, exceptions_of, text):
    """Compare all spans of a text with all phrases, the longest spans first."""
    spans = [(i, j) for i in range(len(text)) for j in range(i + 1, len(text) + 1)]
    excluded = [
        (i, j, exceptions_of[tuple(text[i:j])])
        for i, j in spans
        if tuple(text[i:j]) in exceptions_of
    ]
    is_free, found = [True] * len(text), set()
    for i, j in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if tuple(text[i:j]) in columns_of and all(is_free[i:j]):
            is_free[i:j] = [False] * (j - i)
            for column in columns_of[tuple(text[i:j])]:
                if not any(a <= i and j <= b and column in others for a, b, others in excluded):
                    found.add(column)
    return found


@given(
    st.dictionaries(WORDS, COLUMNS, max_size=8),
    st.dictionaries(WORDS, COLUMNS, max_size=4),
    st.lists(st.sampled_from("abcd"), max_size=12),
)
def test_the_trie_finds_what_a_search_of_all_spans_finds(columns_of, exceptions_of, text):
    trie = build_phrase_trie(columns_of, exceptions_of)
    assert find_phrase_columns(trie, text) == columns_by_search(columns_of, exceptions_of, text)


def test_the_longest_match_is_first_and_its_words_are_used_once():
    trie = build_phrase_trie({("a",): [0], ("a", "b"): [1], ("b", "c", "d"): [2], ("b",): [3]}, {})
    assert find_phrase_columns(trie, list("abcd")) == {0, 2}
    assert find_phrase_columns(trie, list("abc")) == {1}
    assert find_phrase_columns(trie, list("ab b")) == {1, 3}


def test_an_exception_concerns_its_label_only():
    trie = build_phrase_trie(
        {("baby",): [0], ("elephant",): [1]}, {("baby", "elephant"): [0], ("x",): [1]}
    )
    assert find_phrase_columns(trie, ["baby", "elephant"]) == {1}
    assert find_phrase_columns(trie, ["baby", "elephant", "baby"]) == {0, 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two DOGS, one hot-dog.", "two dogs one hot dog"),
        ("a man's t_shirt (red)", "a man s t shirt red"),
        ("STRASSE straße", "strasse strasse"),
        ("cafe\u0301 ＣＡＦÉ ﬁsh", "café café fish"),
        ("soft\u00adware e\u200bmail ❤\ufe0f", "software email"),
        ("हिन्दी कुत्ता", "हिन्दी कुत्ता"),
        ("Ёлка ΣΊΣΥΦΟΣ 狗", "ёлка σίσυφοσ 狗"),
        ("… — ‘’ 🐶", ""),
    ],
)
def test_the_words_of_a_text(text, words):
    assert split_words(text) == words.split()


@given(st.text(max_size=30))
def test_words_are_letters_marks_and_digits_whatever_the_normal_form(text):
    words = split_words(text)
    assert all(unicodedata.category(c)[0] in "LMN" for word in words for c in word)
    assert split_words(" ".join(words)) == words
    assert split_words(unicodedata.normalize("NFD", text)) == words
    assert split_words(f"({text})!") == words
