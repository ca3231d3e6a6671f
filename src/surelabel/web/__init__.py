"""Serve an index over HTTP: a JSON API for searches, images, labels and uploads."""
