path "secret/data/vendor/*"     { capabilities = ["create", "read", "update"] }
path "secret/metadata/vendor/*" { capabilities = ["read", "patch"] }
