"""Running flows on the network: `Client` and `AsyncClient`."""
