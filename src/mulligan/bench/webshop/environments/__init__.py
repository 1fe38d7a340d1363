"""Environments of WebShop."""
