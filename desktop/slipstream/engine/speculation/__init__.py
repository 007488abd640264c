"""Drafting and verification."""
