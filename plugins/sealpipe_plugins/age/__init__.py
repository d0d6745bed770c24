"""age: files encrypted to keys."""
