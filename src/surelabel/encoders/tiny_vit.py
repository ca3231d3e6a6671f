"""Load tiny-vit, a small ViT that was trained on emoji scenes."""

from surelabel.encoders.embedded.embedded_weights import encoder_with_embedded_weights
from surelabel.encoders.open_clip.encoder import OpenClipEncoder


def tiny_vit(*, device: str = "cpu") -> OpenClipEncoder:
    """Load the ViT with 6 layers and width 192, for images of 96 pixels with 8 by 8 patches."""
    return encoder_with_embedded_weights("tiny-vit", device)
