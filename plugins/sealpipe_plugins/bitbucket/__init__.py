"""Bitbucket: jobs of its Pipelines."""
