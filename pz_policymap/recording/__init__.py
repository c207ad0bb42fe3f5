"""Records finished episodes of a tagged environment, observed from outside the policy wrapper."""
