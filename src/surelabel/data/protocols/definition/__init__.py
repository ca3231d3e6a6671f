"""This package defines what an evaluation protocol contains, and checks folders against it."""
