"""Read word lists: words by which captions mention a label."""

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from surelabel.data.text_labels.phrase_matching import split_words
from surelabel.errors import DataError
from surelabel.file_readers import quote_of_file, read_text

HEADER = ("label", "synonyms", "kinds", "exceptions")


@dataclass(frozen=True)
class WordListEntry:
    """Line of a word list: a label with its synonyms, narrower terms and exceptions.

    Attributes:
        spellings: Label and its synonyms. The line applies to every label that has one of these
            spellings.
        kinds: Narrower terms, such as "puppy" for "dog". The line does not apply to labels that are
            narrower terms.
        exceptions: Phrases that contain one of the words but do not mention the label, such as "hot
            dog" for "dog".
    """

    spellings: tuple[str, ...]
    kinds: tuple[str, ...]
    exceptions: tuple[str, ...]


def read_word_list(path: str | Path | None) -> dict[tuple[str, ...], WordListEntry]:
    """Read a word list with the columns label, synonyms, kinds and exceptions, separated by tabs.

    Each column except the first contains spellings separated by ``|``, or is empty. Empty columns
    at the end of a line may be omitted. The list needs no plurals.

    Args:
        path: Path of a text file in UTF-8. If None, the list ``caption_words.tsv`` of this package
            is used, which has the 80 categories of COCO and the spellings of VOC.

    Returns:
        The line of each label and each synonym, by the words of the spelling.

    Raises:
        DataError: If the file cannot be read, if the header or a line is invalid, or if a label or
            synonym is in two lines. The message contains the number of the line.
    """
    if path is None:
        with as_file(files("surelabel.data").joinpath("caption_words.tsv")) as file:
            return read_word_list(file)
    header, *lines = read_text(path).split("\n")
    if tuple(header.split("\t")) != HEADER:
        raise DataError(
            f"{path}: the first line must contain the columns {', '.join(HEADER)}, separated by "
            f"tabs; got {quote_of_file(header)}. Add the header."
        )
    entries: dict[tuple[str, ...], WordListEntry] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        entry = _parse_word_list_line(f"{path}, line {number}", line)
        for words in {tuple(split_words(spelling)): None for spelling in entry.spellings}:
            if words in entries:
                raise DataError(
                    f"{path}, line {number}: a label or synonym must be in one line only; got "
                    f"{' '.join(words)!r} again. Remove this spelling from one of the lines."
                )
            entries[words] = entry
    return entries


def _parse_word_list_line(place: str, line: str) -> WordListEntry:
    columns = line.split("\t")
    if len(columns) > len(HEADER) or not columns[0].strip():
        raise DataError(
            f"{place}: expected a label and at most {len(HEADER) - 1} more columns, separated by "
            f"tabs; got {quote_of_file(line)}. Correct that line."
        )
    label, synonyms, kinds, exceptions = [*columns, "", "", ""][: len(HEADER)]
    return WordListEntry(
        _word_list_spellings(place, "|".join(filter(None, (label, synonyms)))),
        _word_list_spellings(place, kinds),
        _word_list_spellings(place, exceptions),
    )


def _word_list_spellings(place: str, text: str) -> tuple[str, ...]:
    spellings = tuple(spelling.strip() for spelling in text.split("|")) if text.strip() else ()
    if invalid := [spelling for spelling in spellings if not split_words(spelling)]:
        raise DataError(
            f"{place}: every spelling must contain letters or digits; got "
            f"{quote_of_file(invalid[0])}. Correct that line."
        )
    return spellings
