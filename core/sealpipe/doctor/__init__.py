"""The checks of `sealpipe doctor`, and the findings that they report.

    findings         what a check reports
    all_checks       all checks, one after the other
    plugins          installed plugins, named stores, policies and observers
    machine          global settings and their origin, values for commands, the credential, state
                     directory and outbox
    connectivity     host, proxy, certificate, clock, the host of links; a test share
    scopes           what the API key may do
    conformance      the wire format's vectors

No check changes anything at the service, except for the test share of `--roundtrip`. No finding
contains a secret.
"""
