"""What `status` and `report` tell of a batch: figures, files and a page."""
