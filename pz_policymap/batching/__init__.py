"""Rows of a batch and the policies that act on them; recurrent state per row."""
