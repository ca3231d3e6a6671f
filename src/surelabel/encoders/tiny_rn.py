"""A small CLIP ResNet, trained on emoji scenes."""

from surelabel.encoders.embedded.embedded_weights import load_embedded_encoder
from surelabel.encoders.open_clip.encoder import OpenClipEncoder


def tiny_rn(*, device: str = "cpu") -> OpenClipEncoder:
    """Load the CLIP ResNet of stride 32: a grid of 3 by 3 at 96 pixels, of 8 by 8 at 256 pixels."""
    return load_embedded_encoder("tiny-rn", device)
