"""Load tiny-rn, a small CLIP ResNet that was trained on emoji scenes."""

from surelabel.encoders.embedded.embedded_weights import encoder_with_embedded_weights
from surelabel.encoders.open_clip.encoder import OpenClipEncoder


def tiny_rn(*, device: str = "cpu") -> OpenClipEncoder:
    """Load the CLIP ResNet with stride 32, which has 3 by 3 patches for images of 96 pixels."""
    return encoder_with_embedded_weights("tiny-rn", device)
