"""Files that must survive: the outbox, ledgers, receipts, what was created here."""
