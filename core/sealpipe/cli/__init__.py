"""click: one file a command; `render.py` is the only place that prints."""
