"""Words that the project does not use: each has a term of the field in its place."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTEAD = {
    r"pictures?": "image",
    r"backbones?": "encoder",
    r"honest(y|ly)?": "calibrated",
    r"strangeness": "out-of-distribution score",
    r"familiarity": "out of distribution",
    r"foreign": "out of distribution",
    r"dear": "expensive",
    r"leaning": "shrinkage",
    r"clearest": "lowest entropy",
    r"wording": "prompt templates",
    r"comes? to rest": "converges",
    r"nobody": "name the cause",
    r"somebody": "the user",
    r"of its own": "separate",
    r"looks? like nothing": "out of distribution",
}
BANNED = {
    re.compile(rf"(?<![a-z]){word}(?![a-z])".replace(" ", r"\s+"), re.IGNORECASE): term
    for word, term in INSTEAD.items()
}
QUOTED = ("a picture of the {}", "photo picture of the in scene")  # data: captions of Scenes
FREE = {"src/surelabel/migration.py"}  # it maps the names of 0.1.0
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "NOTICE", ROOT / "Makefile"]
CODE = [
    file
    for folder in ("src/surelabel", "docs", "benchmarks", "training", ".ci")
    for pattern in ("*.py", "*.html", "*.css")
    for file in (ROOT / folder).rglob(pattern)
]
FILES = sorted(file for file in [*PAGES, *CODE] if str(file.relative_to(ROOT)) not in FREE)


def text_to_check(file):
    """Return the text of a file without what was written for earlier releases or is data."""
    text = file.read_text(encoding="utf-8")
    if file.name == "CHANGELOG.md":
        text = text.partition("\n## [0.1.0]")[0]
        text = re.sub(r"`[^`\n]*`", "", text)  # names of earlier versions
    for quoted in QUOTED:
        text = text.replace(quoted, "")
    return text


def banned_words(text):
    """Return one sentence for each banned word of a text, with its line."""
    return [
        f'line {text[: match.start()].count(chr(10)) + 1}: "{match[0]}"; write: {term}'
        for pattern, term in BANNED.items()
        for match in pattern.finditer(text)
    ]


def test_no_file_uses_a_word_that_has_a_term_of_the_field():
    words = {str(file.relative_to(ROOT)): banned_words(text_to_check(file)) for file in FILES}
    assert len(words) > 500
    assert not {file: sentences for file, sentences in words.items() if sentences}


@pytest.mark.parametrize("line", ["A backbone.", "many_pictures = 3", "Its HONEST probability."])
def test_a_banned_word_is_found_in_prose_and_in_names(line):
    assert banned_words(line)


@pytest.mark.parametrize("line", ["the foreigner", "dearth", "An image encoder."])
def test_other_words_are_allowed(line):
    assert not banned_words(line)
