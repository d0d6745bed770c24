"""Files that must survive: atomic 0600 writes, locks, the sealed journal, and the outbox that stands on them."""
