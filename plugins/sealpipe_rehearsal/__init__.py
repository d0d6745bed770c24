"""The rehearsal: a faithful local copy of the service, and the people at the other end of its links.

    service/   the service itself: the specification read a second time, importing nothing of ours
    server     start() in a thread, serve() as a command      running    what start() returns
    listening  uvicorn on a loopback socket                   door       the control door, from outside
    keys       minting credentials                            people     a recipient with a link

Importing this package loads nothing else.
"""
