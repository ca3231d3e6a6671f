"""Steps shared by the annotation formats: format detection, paths and label columns."""
