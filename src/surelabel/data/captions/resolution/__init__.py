"""Steps shared by the caption formats: format detection, texts and image paths."""
