"""Detect caption formats, and resolve texts and image paths for all caption formats."""
