"""Replace the targets of random rows by the targets that were annotated for the random sample."""

from dataclasses import replace
from typing import overload

import numpy as np

from surelabel.records import LabelledFeatures, LabelledImages, LabelledScores, RowSelection


@overload
def with_sample_targets(source: LabelledImages) -> LabelledImages: ...
@overload
def with_sample_targets(source: LabelledFeatures) -> LabelledFeatures: ...
@overload
def with_sample_targets(
    source: LabelledImages | LabelledFeatures,
) -> LabelledImages | LabelledFeatures: ...
def with_sample_targets(
    source: LabelledImages | LabelledFeatures,
) -> LabelledImages | LabelledFeatures:
    """Return rows whose random rows have only the targets annotated for the random sample.

    If errors of predictions were corrected, the corrected targets of an image depend on the
    predictions. Such targets of a random row would bias metrics and calibration. Other rows do not
    change. If the source states no targets of the sample, the source itself is returned.

    Args:
        source: Images, vectors or scores with labels.

    Example:
        >>> selection = RowSelection(["random"], [0.5], ["dog"], np.array([[np.nan]]))
        >>> images = LabelledImages(["a.jpg"], ["dog"], [[1]], row_selection=selection)
        >>> with_sample_targets(images).known.tolist()
        [[False]]
    """
    selection = source.row_selection
    if selection is None or selection.sample_targets is None:
        return source
    column_of = {name: column for column, name in enumerate(selection.sample_names)}
    is_random = selection.is_random
    targets = np.where(source.known, source.targets, np.nan)
    targets[is_random] = np.nan
    for column, name in enumerate(source.names):
        if name in column_of:
            values = selection.sample_targets[is_random, column_of[name]]
            targets[is_random, column] = values
    plain = RowSelection(selection.chosen_by, selection.inclusion_probability)
    if isinstance(source, LabelledScores):
        return source.with_labels(source.names, targets).with_row_selection(plain)
    known = ~np.isnan(targets)
    return replace(source, targets=targets, known=known, row_selection=plain)
