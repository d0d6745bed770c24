"""Writing fields into sinks."""
