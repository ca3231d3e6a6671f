"""Serve an index over HTTP: a page for browsers, and a JSON API."""
