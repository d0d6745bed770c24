"""What `sealpipe doctor` looks at: settings, credential, state folder, the way to the service, scopes, plugins.

    finding   one line of the report     configured  settings and where they come from     holder  the credential
    place     the state folder           way         host, proxy, certificate, clock       scopes  what the key may do
    roundtrip a test share               installed   plugins

Nothing here changes anything, but for the test share of `--roundtrip`. No finding holds a secret.
"""
