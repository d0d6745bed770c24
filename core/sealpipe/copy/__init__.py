"""Copy values from store to store. The service is not called."""
