"""Who makes an attempt: one file, one actor."""
