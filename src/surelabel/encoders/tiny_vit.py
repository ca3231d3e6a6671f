"""Load tiny-vit, a small ViT that was trained on emoji scenes."""

from surelabel.encoders.embedded.embedded_weights import encoder_with_embedded_weights
from surelabel.encoders.open_clip.encoder import OpenClipEncoder


def tiny_vit(*, device: str = "cpu") -> OpenClipEncoder:
    """Load a ViT with 6 layers, width 192, and a grid of 8 by 8 patches for 96 by 96 pixels.

    Args:
        device: PyTorch device of the encoder, such as ``cpu`` or ``cuda``.
    """
    return encoder_with_embedded_weights("tiny-vit", device)
