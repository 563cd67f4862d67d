"""Cases and inventories as text for people, and as scripts."""
