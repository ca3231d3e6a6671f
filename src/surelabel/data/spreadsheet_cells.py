"""Escape cells of CSV files that a spreadsheet program would execute as a formula."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def spreadsheet_safe_cell(text: str) -> str:
    """Return a text that a spreadsheet program does not execute as a formula.

    A text that begins with one of ``FORMULA_STARTS`` is prefixed with an apostrophe. So is a text
    that begins with apostrophes before a formula, so that different texts have different cells.

    Example:
        >>> spreadsheet_safe_cell("=HYPERLINK(A1).jpg"), spreadsheet_safe_cell("images/a.jpg")
        ("'=HYPERLINK(A1).jpg", 'images/a.jpg')
    """
    return f"'{text}" if _contains_formula(text) else text


def text_of_spreadsheet_cell(cell: str) -> str:
    """Return the text of a cell that :func:`spreadsheet_safe_cell` wrote.

    Example:
        >>> text_of_spreadsheet_cell("'=HYPERLINK(A1).jpg"), text_of_spreadsheet_cell("'tis")
        ('=HYPERLINK(A1).jpg', "'tis")
    """
    return cell[1:] if cell.startswith("'") and _contains_formula(cell) else cell


def _contains_formula(text: str) -> bool:
    """Return whether a text is a formula, apart from apostrophes at its beginning."""
    return text.lstrip("'").startswith(FORMULA_STARTS)
