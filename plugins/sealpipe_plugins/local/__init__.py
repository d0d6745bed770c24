"""Sources, sinks and channels of this machine: variables, files, standard input, programs, the terminal."""
