"""A program that goes wrong on a device -> the first op that did damage, why, and a script that shows it."""
