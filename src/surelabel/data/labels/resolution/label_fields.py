"""Choose the field with the labels, if the annotations of an image have several fields."""

from collections.abc import Iterable
from pathlib import Path
from shlex import quote

from surelabel.data.label_names import has_control_character
from surelabel.data.labels.resolution.image_resolution import quote_first_unresolved
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file


def choose_label_field(source: Path, fields: Iterable[str], label_field: str | None) -> str:
    """Return ``label_field``, or the only field of a file if ``label_field`` is None.

    Args:
        source: Path of the annotation file, for messages.
        fields: Names of the fields with labels.
        label_field: Name of the requested field, or None.

    Raises:
        InputError: If no field has the requested name.
        DataError: If no field was requested, and there is not exactly one field. Also if the name
            of a field contains a control character.
    """
    names = sorted(set(fields))
    if invalid := next(filter(has_control_character, names), None):
        raise DataError(
            f"{source}: the name of a field must not contain a control character; got "
            f"{quote_of_file(invalid)}. Rename the field."
        )
    if label_field is not None:
        if label_field not in names:
            raise InputError(
                f"label_field must be a field with labels in {source}; got {label_field!r}. The "
                f"fields are: {quote_first_unresolved(names) or 'none'}."
            )
        return label_field
    if len(names) != 1:
        remedy = "Annotate an image, or give another file."
        if names:
            remedy = f"Add --label-field {quote(names[0])} (in Python label_field={names[0]!r})."
        raise DataError(
            f"{source} must contain one field with labels; got {len(names)} fields"
            f"{': ' if names else ''}{quote_first_unresolved(names)}. {remedy}"
        )
    return names[0]
