"""Multiple-instance learning: labels are learned from the instance that scores highest."""
