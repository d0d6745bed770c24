"""click: one file a command; `output.py` is the only place that prints."""
