"""Finds and describes model files without loading them."""
