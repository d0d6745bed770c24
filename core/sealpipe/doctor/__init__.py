"""What `sealpipe doctor` looks at: settings, credential, state folder, plugins, the way to the service, scopes.

    finding     one line of the report      configured    global settings and where they come from
    values      every other value           holder        the credential
    place       the state folder            installed     plugins
    backends    stores, policies            link_address  where links lead
    way         host, proxy, clock          scopes        what the key may do
    roundtrip   a test share                conformance   the wire format's vectors, by themselves

Nothing here changes anything, but for the test share of `--roundtrip`. No finding holds a secret.
"""
