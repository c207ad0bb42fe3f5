"""The rules that decide which policy plays which seat, a file a family."""
