"""What can be asked of the service, as values. No network here (specification: Endpoints)."""
