"""Cases with hidden targets, who plays, and who judges afterwards: one file, one benchmark."""
