"""Number of images that an encoder processes at once."""

from surelabel.encoders import Encoder

MAX_IMAGES = 64
MAX_FLOPS = 4e11  # of a batch: 4 to 15 seconds on one CPU core
PATCH_PIXELS = 16**2


def encoding_batch_size(encoder: Encoder) -> int:
    """Return the number of images per forward pass for an encoder, from 1 to 64.

    On a CPU, a forward pass takes less than about 15 seconds with one core, because features can be
    written to the cache only between two passes. The floating-point operations of an image are
    estimated as 2 per parameter of the image encoder and patch of 16 by 16 pixels. ViT-B/16 at 224
    pixels has batches of 11 images, ViT-L/14 at 336 pixels of 1 image, and small encoders of 64. On
    another device, every encoder has batches of 64 images.

    The number does not depend on the number of CPU cores or the time, so that features do not
    differ in their last digits between runs.
    """
    if encoder.device.type != "cpu":
        return MAX_IMAGES
    flops_per_patch = 2 * encoder.n_image_parameters  # raises an error if there are no images
    height, width = encoder.preprocess_cfg["size"]
    flops = flops_per_patch * height * width / PATCH_PIXELS
    return max(1, int(min(MAX_IMAGES, MAX_FLOPS / max(flops, 1))))
