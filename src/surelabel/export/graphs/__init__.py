"""Build the parts of the graph of a recognizer: image features, label texts and region matching."""
