"""Google Secret Manager."""
