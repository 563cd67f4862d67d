"""Triage of a program that fails on a device: finds the first wrong op and its cause, and writes a script."""
