"""PostgreSQL: passwords of roles."""
