"""Builders of tiny GGUF files: models that load and run in milliseconds, and raw headers."""
