"""The part of Python on a Mac that reads the system's proxies; here there are none."""


def _get_proxy_settings() -> dict[str, object]:  # pyright: ignore[reportUnusedFunction]
    return {}


def _get_proxies() -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]
    return {}
