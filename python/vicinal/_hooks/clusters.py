"""Hooks of sklearn.cluster's k-means."""

from __future__ import annotations

from vicinal._hooks.registry import Hook

__all__ = ["HOOKS"]

HOOKS: list[Hook] = []
