"""Carries work to the engine's thread and its events back to the window; QtCore only."""
