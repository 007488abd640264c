"""Instruments: self-painted, quiet until something is measured, at most ten repaints a second."""
