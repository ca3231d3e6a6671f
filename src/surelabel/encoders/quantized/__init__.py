"""This package quantizes the image towers of encoders to int8, with nncf and OpenVINO."""
