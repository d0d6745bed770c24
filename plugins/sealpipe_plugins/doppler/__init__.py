"""Doppler."""
