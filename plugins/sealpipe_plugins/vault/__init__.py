"""HashiCorp Vault and OpenBao."""
