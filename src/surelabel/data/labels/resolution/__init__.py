"""Detect annotation formats, and resolve paths and label columns for all annotation formats."""
