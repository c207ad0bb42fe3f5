"""What a policy is, and the policies that control the seats of one environment."""
