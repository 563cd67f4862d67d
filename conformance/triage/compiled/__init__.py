"""Triage of a program that torch compiles wrongly: finds the first stage of the compiler that differs."""
