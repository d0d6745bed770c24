"""What users want done, as generators that know no network. One file a flow."""
