"""Define the graph of a recognizer: a module that computes logits from pixels."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from surelabel.arrays import LOGIT_LIMIT
from surelabel.encoders.engines import TORCH_FP32
from surelabel.encoders.image_only.exported_model import ExportedModel
from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.errors import ConfigError
from surelabel.export.calibration import calibration_module
from surelabel.export.calibration.label_tree_module import LabelTreeModule
from surelabel.export.graphs.constant_texts import (
    copy_method_with_shared_tensors,
    store_label_texts,
)
from surelabel.export.graphs.fixed_step_matching import use_fixed_step_matching
from surelabel.export.graphs.pixel_features import (
    PixelFeatures,
    SmallImagePixelFeatures,
    TilePixelFeatures,
    encoder_network,
)
from surelabel.export.graphs.refused_methods import REFUSED_METHODS
from surelabel.export.graphs.window_pixel_features import WindowPixelFeatures
from surelabel.links import HeadWithLink
from surelabel.methods import DenseRegions, Method, UsesViews
from surelabel.recognizer.compatibility import check_encoder_is_not_quantized
from surelabel.recognizer.feature_extraction import feature_extraction_kinds_of_method
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Features
from surelabel.views import RegionLayout, TileLayout

INPUT_NAME = "pixels"
WHOLE_REGION = (0.0, 0.0, 1.0, 1.0)
EXAMPLE_SIZE = (640, 480)  # width and height of an image for which the views are counted


class RecognizerGraph(nn.Module):
    """Compute the logits of a recognizer from preprocessed pixels.

    The module contains the image encoder, the method with the texts of its labels, the link and the
    calibration. ``torch.export`` can record its computation for any number of images. The
    recognizer is not changed, and shares its weights with the module.

    Args:
        recognizer: Fitted recognizer with an image encoder on the CPU.

    Attributes:
        input_name: Name of the input, ``pixels``.
        input_shape: Shape of the pixels of one image: ``(3, h, w)``, or ``(t, 3, h, w)`` for the
            whole image and its tiles.
        output_name: ``logits``, or ``scores`` if there is neither a calibration nor a link.
        preprocess_cfg: Preprocessing settings of the whole image at the size of the input.
        views: Description of the tiles in the input, an object of JSON, or None.
        differences: Sentences that describe differences from ``Recognizer.predict``, except
            rounding errors.

    Raises:
        NotFitted: If the recognizer is not fitted.
        ConfigError: If the recognizer cannot be exported. The message names the reason.
    """

    def __init__(self, recognizer: Recognizer):
        super().__init__()
        recognizer.check_fitted()
        check_recognizer_can_be_exported(recognizer)
        method = copy_method_with_shared_tensors(recognizer.method, [recognizer.encoder]).eval()
        self.pixel_features = _pixel_features(recognizer, method)
        with torch.no_grad():
            store_label_texts(method, self._features_of_blank_image(recognizer))
        matching = use_fixed_step_matching(method)
        self.method, self.link = method, recognizer.link
        record = recognizer.calibration
        self.calibration = None if record is None else calibration_module(record)
        self.tree: LabelTreeModule | None = None
        if record is None and self.link and recognizer.label_tree:
            columns = recognizer.label_tree.parent_columns(recognizer.names).tolist()
            self.tree = LabelTreeModule(columns)
        self.input_name = INPUT_NAME
        self.output_name = "logits" if record or self.link else "scores"
        self.input_shape = self.pixel_features.input_shape
        self.preprocess_cfg: dict[str, Any] = self.pixel_features.preprocess_cfg
        self.views: dict[str, Any] | None = self.pixel_features.views
        self.differences = self.pixel_features.differences
        if matching and matching.is_iterative:
            self.differences += (
                f"Each transport plan of regions and labels has at most {matching.steps} Sinkhorn "
                "steps, but Recognizer.predict has as many steps as the plan needs.",
            )
        self.eval().requires_grad_(False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return logits in [-40, 40], or scores, in float32, ``(n, c)``.

        Args:
            pixels: Preprocessed pixels in float32, ``(n, …)`` with ``input_shape``.
        """
        features = self.pixel_features(pixels)
        raw = self.method(features).float()
        if self.link is not None:
            raw = self.link.logits(raw)
        if self.calibration is not None:
            raw = self.calibration(raw, features.pooled.float())
        if self.output_name == "scores":
            return raw
        logits = raw.clamp(-LOGIT_LIMIT, LOGIT_LIMIT)
        return logits if self.tree is None else self.tree(logits)

    def _features_of_blank_image(self, recognizer: Recognizer) -> Features:
        features: Features = self.pixel_features(torch.zeros(1, *self.pixel_features.input_shape))
        return features


def check_recognizer_can_be_exported(recognizer: Recognizer) -> None:
    """Check that the parts of a recognizer can be parts of a graph.

    Raises:
        ConfigError: If the method is in ``REFUSED_METHODS`` or has a folded link, the recognizer
            has no labels, the encoder has no PyTorch network on the CPU, or another engine runs
            the network.
    """
    name, encoder = recognizer.run.method.name, recognizer.encoder
    if isinstance(recognizer.method, HeadWithLink):
        raise ConfigError(
            "The link of the method must not be folded before an export, which folds the link; got "
            "HeadWithLink. Give the recognizer without fold_link."
        )
    if name in REFUSED_METHODS:
        raise ConfigError(f"The method {name} cannot be exported: {REFUSED_METHODS[name]}.")
    if not recognizer.names:
        raise ConfigError(
            f"An export needs labels; this recognizer ({name}) compares images with sentences and "
            "has none. Set labels with with_names."
        )
    check_encoder_is_not_quantized(encoder, "exported")
    if isinstance(encoder, PrecomputedFeatures):
        raise ConfigError(
            f"The encoder {encoder.name} cannot be exported: its vectors or scores are computed by "
            "another program. Export a recognizer with an image encoder."
        )
    if isinstance(encoder, ExportedModel):
        raise ConfigError(
            f"{encoder.name} was exported before, and its graph is not a PyTorch module. Export "
            "the recognizer itself."
        )
    if encoder_network(encoder) is None:
        raise ConfigError(
            f"The encoder {encoder.name} cannot be exported: its network is not a PyTorch module. "
            "Export a recognizer with an encoder of open_clip, timm or transformers."
        )
    if encoder.engine != TORCH_FP32:
        raise ConfigError(
            f"A recognizer must have the engine torch with fp32 for an export; got "
            f"{encoder.engine.description}. Give recognizer.with_engine('torch')."
        )
    if encoder.device.type != "cpu":
        raise ConfigError(
            f"A recognizer must be on the CPU for an export; got {encoder.device}. Load the "
            "recognizer with device='cpu'."
        )


def _pixel_features(recognizer: Recognizer, method: Method) -> PixelFeatures:
    """Return the module that computes the features of a method from pixels.

    Raises:
        ConfigError: If the views of the method depend on the image file or the scores.
    """
    default = recognizer.encoder
    encoder = default.with_image_size(method.image_size) if method.image_size else default
    kinds = feature_extraction_kinds_of_method(method)
    if isinstance(method, DenseRegions):
        if not method.windows:
            return PixelFeatures(encoder, kinds)
        return WindowPixelFeatures(encoder, kinds, default, method)
    layouts = _layouts_of_any_image(recognizer, method)
    if not layouts:
        return PixelFeatures(encoder, kinds)
    tiles = [layout for layout in layouts if isinstance(layout, TileLayout)]
    if len(tiles) == len(layouts) and not method.image_size:
        return TilePixelFeatures(encoder, kinds, tiles)
    regions = [list(layout.regions) for layout in layouts if isinstance(layout, RegionLayout)]
    if regions == [[WHOLE_REGION]] and len(layouts) == 1:
        return SmallImagePixelFeatures(encoder, kinds, default)
    raise ConfigError(
        f"The method {recognizer.run.method.name} cannot be exported: its views are neither tiles "
        "nor the whole image at another size. Use a method without views, or the method tiles."
    )


def _layouts_of_any_image(recognizer: Recognizer, method: Method) -> list[object]:
    """Return the layouts that a method requests for an image whose vector is zero, in order."""
    if not isinstance(method, UsesViews):
        return []
    pooled, layouts = torch.zeros(1, recognizer.encoder.width), list[object]()
    features, n_views = Features(pooled), 0
    while n_views < method.max_views and (layout := method.next_views(features)) is not None:
        layouts.append(layout)
        n_views += 1 if isinstance(layout, Sequence) else len(layout.boxes(EXAMPLE_SIZE, ""))
        features = Features(pooled, views=pooled[:, None].expand(1, n_views, -1))
    return layouts
