"""The generators of `gen:` and their entropy: text and words, identifiers, key pairs."""
