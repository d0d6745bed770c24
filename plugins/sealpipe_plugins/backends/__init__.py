"""Systems that plugins speak to: the settings and the connection of each, once."""
