"""Learn labels by multiple-instance learning, from the highest-scoring instance of an image."""
