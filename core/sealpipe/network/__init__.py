"""The one way out: connections, exchanges, limits, tries and deadlines."""
