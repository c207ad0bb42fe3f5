"""What episodes ended with, and what is made of it; nothing here knows an environment."""
