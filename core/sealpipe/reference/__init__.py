"""The grammar of references."""
