"""The version: a constant, so that telling it reads no metadata."""

__version__ = "0.1.0"
