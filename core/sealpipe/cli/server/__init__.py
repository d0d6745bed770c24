"""`sealpipe server`: a service of one's own, and what its operator does in its database.

Nothing here calls the service. Secrets of keys are made in memory and printed once; the service's
own code (`sealpipe_service`) gets a hash, a level and a public key.
"""
