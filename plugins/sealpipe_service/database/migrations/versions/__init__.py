"""Each version of the tables, and how it is made of the one before."""
