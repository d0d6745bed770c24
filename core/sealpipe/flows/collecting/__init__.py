"""Collecting what people submitted: keys in hand, opening, choosing, storing, waiting (DESIGN 6.5 and 6.6)."""
