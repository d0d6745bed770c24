"""The wire format by itself: bytes in, bytes out, no file and no socket.

    encoding     base64 and base64url, strict both ways; percent-encoded short codes; JSON strings
    jsontext     JSON text, strict both ways
    fields       the plaintext: an array of labelled values
    envelope     the plaintext sealed under a content key (`data`)
    tokens       every HKDF of the format, access token and passcode verifier
    link         fragments, share links, collect links, access links
    keys         P-256 key pairs from a seed or from a custody secret
    sealed_box   bytes sealed to a public key (`item_key_wrap`, submissions)

Nothing is imported here, so that `import sealpipe.wire.tokens` does not load elliptic curves.
Every refusal is a `sealpipe.errors.WireError` whose `.reason` is one stable word; none contains a
secret.
"""
