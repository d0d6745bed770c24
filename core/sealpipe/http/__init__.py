"""The one way to the network: transport, TLS, proxies, deadlines, size limits, rate limiter and redaction."""
