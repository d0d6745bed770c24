"""sealpipe."""
