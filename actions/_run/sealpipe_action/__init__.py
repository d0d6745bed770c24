"""What stands between an action's inputs and `sealpipe`.

Only the standard library, and what the checkout's `core` has that needs no more: the Python may be anybody's, from 3.9
on. So outputs and the summary are written here once more (files.py): the plugin for GitHub needs sealpipe installed.
"""
