"""What users want done, as generators that know no network. A folder for each thing that users do."""
