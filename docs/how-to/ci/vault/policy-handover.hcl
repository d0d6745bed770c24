path "secret/data/app/db" { capabilities = ["read"] }
