"""This package contains the projection of logits to a tree of labels, after any calibrator."""
