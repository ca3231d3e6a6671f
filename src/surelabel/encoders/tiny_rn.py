"""Load tiny-rn, a small CLIP ResNet that was trained on emoji scenes."""

from surelabel.encoders.embedded.embedded_weights import encoder_with_embedded_weights
from surelabel.encoders.open_clip.encoder import OpenClipEncoder


def tiny_rn(*, device: str = "cpu") -> OpenClipEncoder:
    """Load a CLIP ResNet of stride 32, with a grid of 3 by 3 patches for 96 by 96 pixels.

    Args:
        device: PyTorch device of the encoder, such as ``cpu`` or ``cuda``.
    """
    return encoder_with_embedded_weights("tiny-rn", device)
