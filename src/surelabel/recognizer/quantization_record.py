"""Return the record of the quantization of a recognizer."""

from surelabel.encoders import Encoder
from surelabel.encoders.quantized.quantized_encoder import QuantizationRecord, QuantizedEncoder
from surelabel.features import without_text_feature_cache


def quantization_record(encoder: Encoder) -> QuantizationRecord | None:
    """Return the quality of a recognizer before and after the quantization of its encoder.

    Args:
        encoder: Encoder of the recognizer. If it was not quantized, the result is None.
    """
    original: object = without_text_feature_cache(encoder)
    return original.record if isinstance(original, QuantizedEncoder) else None
