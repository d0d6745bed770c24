"""AWS Secrets Manager and Parameter Store."""
