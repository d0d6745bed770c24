"""The command line, on click."""
