"""The service's API as values. Nothing here uses the network."""
