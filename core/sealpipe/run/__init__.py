"""`sealpipe run` and `sealpipe read`: secrets for a command on this machine."""
