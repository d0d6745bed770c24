"""Sources: references are resolved to fields."""
