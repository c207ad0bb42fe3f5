"""The rules that decide which policy controls which seat, one file per family."""
