"""Azure Key Vault."""
