"""A small ViT, trained on emoji scenes."""

from surelabel.encoders.embedded.embedded_weights import load_embedded_encoder
from surelabel.encoders.open_clip.encoder import OpenClipEncoder


def tiny_vit(*, device: str = "cpu") -> OpenClipEncoder:
    """Load the ViT of 6 layers and width 192, for images of 96 pixels with 8 by 8 patches."""
    return load_embedded_encoder("tiny-vit", device)
