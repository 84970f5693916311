"""Outlines of texts: symbols with their lines.

parsed (from a syntax tree), plain (without a grammar), nesting, languages
"""
