"""Captured attention calls, from which any weights can be recomputed."""
