"""A batch file and its rows: read, checked whole, and rendered row by row."""
