"""Email over SMTP."""
