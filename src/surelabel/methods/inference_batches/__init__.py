"""Score many images in batches, so that intermediate results need little memory."""
