"""Widgets. Everything a person sees and touches; knows the bridge, never llama.cpp or storage."""
