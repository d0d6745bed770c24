"""Delivery: recipients, their messages, and sending them once."""
