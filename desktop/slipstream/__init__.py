"""Slipstream: a desktop app to chat with local language models."""

__version__ = "0.1.0"
