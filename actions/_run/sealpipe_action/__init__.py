"""What stands between an action's inputs and `sealpipe`. Only the standard library: the venv may be anybody's."""
