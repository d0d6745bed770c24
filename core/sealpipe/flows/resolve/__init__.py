"""Reading what references name: fetch documents, decode them, select fields."""
