"""Format counts with their nouns for messages, such as ``1 image`` and ``1,500 images``."""


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun in the singular or the plural.

    Args:
        count: Number of items. Thousands are separated by commas.
        noun: Noun in the singular.
        plural: Noun in the plural. If None, an s is appended to ``noun``.

    Example:
        >>> format_count(1, "image"), format_count(1500, "image"), format_count(0, "label")
        ('1 image', '1,500 images', '0 labels')
        >>> format_count(2, "query", "queries")
        '2 queries'
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
