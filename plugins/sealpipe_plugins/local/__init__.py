"""What this machine has: variables, files, standard input, programs, the terminal."""
