"""What `gen:` draws, and how much of it there is: text and words, identifiers, key pairs."""
