"""Describe an exported recognizer by metadata, which are stored in its file."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.errors import InputError, NotFitted
from surelabel.export.check_images import ExportViews
from surelabel.export.recognizer_graph import RecognizerGraph
from surelabel.recognizer import Recognizer
from surelabel.records import EncoderLicense
from surelabel.records.export_metadata import ExportMetadata

DEFAULT_THRESHOLD = 0.5
ANY_SIZE = -1  # of an axis


def describe_export(
    recognizer: Recognizer,
    graph: RecognizerGraph,
    views: ExportViews,
    *,
    thresholds: float | Array | None = None,
    preprocessing_in_graph: bool = False,
    preprocessing_difference: Mapping[str, float] | None = None,
) -> ExportMetadata:
    """Return the metadata of an exported recognizer.

    Args:
        recognizer: Recognizer of c labels.
        graph: Graph of the recognizer.
        views: Preprocessing and views of an image.
        thresholds: Minimum probability, as one number or as an array ``(c,)``. If None, the
            threshold of each label is 0.5.
        preprocessing_in_graph: Whether the images are preprocessed in the graph.
        preprocessing_difference: Largest differences to the preprocessing by Pillow, or None.

    Raises:
        NotFitted: If there are thresholds, and the output contains scores.
        InputError: If a threshold is not in [0, 1], or their shape is not ``(c,)``.
    """
    is_logits = graph.output_name == "logits"
    if thresholds is not None and not is_logits:
        raise NotFitted(
            "Thresholds require probabilities; the recognizer is not calibrated, so its scores "
            "only rank labels. Calibrate the recognizer first (`surelabel calibrate`)."
        )
    run, settings = recognizer.run, views.preprocess.settings
    return ExportMetadata(
        names=tuple(recognizer.names),
        names_with_aliases=tuple(recognizer.names_with_aliases),
        output="logits" if is_logits else "scores",
        calibrated_on=recognizer.calibrated_on if is_logits else None,
        thresholds=_thresholds_of_labels(thresholds, len(recognizer.names)) if is_logits else None,
        input_name="images" if preprocessing_in_graph else graph.input_name,
        input_shape=(ANY_SIZE, ANY_SIZE, 3) if preprocessing_in_graph else graph.input_shape,
        output_name=graph.output_name,
        preprocessing=dict(settings),
        preprocessing_in_graph=preprocessing_in_graph,
        preprocessing_difference=preprocessing_difference,
        min_side=views.preprocess.input_side,
        views=_views_as_metadata(graph, views),
        encoder=recognizer.encoder.name,
        license=license_as_metadata(recognizer.encoder.license),
        method=run.method.name,
        method_settings=dict(run.method.settings),
        fingerprint=recognizer.fingerprint,
        differences=tuple(graph.differences),
        version=version("surelabel"),
        parents=dict(recognizer.label_tree.parents) if recognizer.label_tree else None,
    )


def _views_as_metadata(graph: RecognizerGraph, views: ExportViews) -> dict[str, Any] | None:
    """Return the grids of tiles, and texts that define the tiles."""
    if graph.views is None:
        return None
    grids = [[layout.rows, layout.columns] for layout in views.layouts]
    return {**graph.views, "whole_image": True, "grids": grids}


def license_as_metadata(license: EncoderLicense) -> dict[str, str]:
    """Return the license of an encoder as texts: ``name``, ``source`` and ``text``."""
    return {"name": license.name, "source": license.source, "text": str(license)}


def _thresholds_of_labels(thresholds: float | Array | None, n_labels: int) -> tuple[float, ...]:
    """Return one threshold for each label.

    Raises:
        InputError: If a threshold is not in [0, 1], or their number is wrong.
    """
    values = np.asarray(DEFAULT_THRESHOLD if thresholds is None else thresholds, dtype=np.float64)
    if values.shape not in ((), (n_labels,)):
        raise InputError(
            f"thresholds must be one number, or one number for each of {n_labels} labels; got an "
            f"array of shape {values.shape}."
        )
    if not ((values >= 0) & (values <= 1)).all():  # True for NaN
        raise InputError(f"thresholds must be in [0, 1]; got {thresholds}.")
    return tuple(np.broadcast_to(values, (n_labels,)).tolist())
