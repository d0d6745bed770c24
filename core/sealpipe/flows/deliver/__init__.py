"""Delivering links and passcodes through channels."""
