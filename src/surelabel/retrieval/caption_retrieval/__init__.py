"""Compute ranking metrics of retrieval between images and captions, in both directions."""
